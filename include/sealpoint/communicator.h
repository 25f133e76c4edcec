// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_COMMUNICATOR_H_
#define SEALPOINT_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/deadline.h"
#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

class Communicator;

// A communicator for one thread in the background (Communicator::DuplicateForBackground). That
// thread makes the collective calls; if only the program's own thread may speak to other ranks,
// as with MPI, they are carried out inside Progress, which that one calls now and then.
//
// Thread safety: Progress and Interrupt may be called while the background thread is in a call of
// communicator(). The destructor must not: that thread has ended, or makes no call any more.
class SEALPOINT_EXPORT BackgroundCommunicator {
 public:
  virtual ~BackgroundCommunicator() = default;
  BackgroundCommunicator(const BackgroundCommunicator&) = delete;
  BackgroundCommunicator& operator=(const BackgroundCommunicator&) = delete;

  // For the background thread alone, but for the plain accessors.
  virtual Communicator& communicator() = 0;
  // Carries on what the background thread is in, and waits for nobody. Local: ranks need not call
  // it equally often, but a call of one rank ends only after all have begun theirs. True if
  // something moved, and a further call at once may move more.
  virtual bool Progress() = 0;
  // False if the calls of the background thread end though nobody calls Progress, as those of
  // threads do, or of a process group that any thread may drive. The same on all ranks.
  virtual bool needs_progress() const { return true; }
  // The call that is under way and all later ones return `reason`, whose code must be kComm or
  // kTimeout, since other ranks may be anywhere then. Local; the others notice at their deadline,
  // or earlier if the implementation can tell them.
  virtual void Interrupt(const Status& reason) = 0;

 protected:
  BackgroundCommunicator() = default;
};

// What the collective layer needs of a group of processes: metadata travels through it, payload of
// a save never does. Implementations: SelfCommunicator, ThreadCommunicators, MpiCommunicator
// (sealpoint/mpi_communicator.h), or the caller's own.
//
// Every function that is not a plain accessor is collective: all ranks call it, in the same order.
// A rank that fails does not leave: it takes part to the end (see AgreeOnStatus). Each call returns
// within the deadline; after Timeout or Comm the communicator must not be used again, since ranks
// may disagree on where they are. Messages may exceed 2 GiB.
//
// Thread safety: one call at a time.
class SEALPOINT_EXPORT Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  // in [0, size())
  virtual int size() const = 0;
  virtual const std::string& host() const = 0;  // of this rank

  // Time that one collective call may take before it returns Timeout; kForever (zero): no limit.
  // Implementations begin with kDefaultDeadline. Local: set the same on all ranks.
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;

  // Whether the program compares every collective call between the ranks before it makes the call,
  // as the Python package does. The library then skips exchanges that would only compare it again.
  // The same on all ranks.
  virtual bool calls_are_compared() const { return false; }

  // Errors of all of these: Comm, Timeout.
  virtual Status Barrier() = 0;
  // `bytes` is read on `root` and replaced elsewhere; sizes need not agree beforehand.
  virtual Status Broadcast(Bytes& bytes, int root) = 0;
  // Returns one entry per rank, in rank order, on `root`; an empty vector elsewhere.
  virtual Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) = 0;
  // As Gather, on every rank.
  virtual Result<std::vector<Bytes>> AllGather(ByteSpan bytes) = 0;
  // `outgoing` has one entry per destination rank; returns one entry per source rank. Taken by
  // value: move large messages in, and an implementation may send from that very memory.
  virtual Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) = 0;
  // Element-wise maximum over the ranks; all ranks pass the same count.
  virtual Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) = 0;

  // Collective. The same ranks once more, for saves in the background (Saver::SaveAsync); messages
  // of the two never mix. It has this one's deadline, counted for each call from when the
  // background thread makes it, and, if Progress carries the call, as PolledDeadline does: time in
  // which the program does not call Progress is not the fault of other ranks. Errors: Comm,
  // Timeout; Unsupported if an implementation has none, as here.
  virtual Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground();

 protected:
  Communicator() = default;
};

// How a rank that fails keeps the others company: it hands in its error as the others hand in
// success, and all ranks go on with the same answer. Collective: all ranks call, whatever happened
// to them; use it around anything that ranks do alone between two collective calls.
//
// Returns success if all ranks hand in success. Else every rank gets the same Status: that of the
// lowest rank that failed, with this rank and its host as the place (unless it names one already),
// and with OutcomeIsUnknown as it was there. Costs one AllReduceMax of one number; only a failure
// costs a Broadcast as well.
// Errors besides: Comm, Timeout. If the communicator itself fails, each rank returns its own error,
// or that of the communicator if it had none; then the ranks may differ.
SEALPOINT_EXPORT Status AgreeOnStatus(Communicator& comm, const Status& local_status);

// One rank, no communication.
SEALPOINT_EXPORT std::unique_ptr<Communicator> SelfCommunicator();

// `size` communicators, one per rank, for threads of this process. They share state that lives as
// long as the last of them. Precondition: size >= 1.
SEALPOINT_EXPORT std::vector<std::unique_ptr<Communicator>> ThreadCommunicators(int size);

}  // namespace sealpoint

#endif  // SEALPOINT_COMMUNICATOR_H_
