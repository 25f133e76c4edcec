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

// A communicator for one background thread (Communicator::DuplicateForBackground). The background
// thread makes the collective calls. If only the program's own thread may communicate, as with MPI,
// the calls are executed inside Progress, which that thread calls regularly.
//
// Thread safety: Progress and Interrupt may be called while the background thread is in a call of
// communicator(). Destroy the object only after that thread has ended or makes no further call.
class SEALPOINT_EXPORT BackgroundCommunicator {
 public:
  virtual ~BackgroundCommunicator() = default;
  BackgroundCommunicator(const BackgroundCommunicator&) = delete;
  BackgroundCommunicator& operator=(const BackgroundCommunicator&) = delete;

  // For the background thread only, except for the plain accessors.
  virtual Communicator& communicator() = 0;
  // Local. Advances the background thread's current call without waiting. Ranks need not call it
  // equally often, but a call on one rank completes only after all ranks have started theirs.
  // Returns true if there was progress and another call may make more at once.
  virtual bool Progress() = 0;
  // False if calls of the background thread complete without Progress, as for threads or for a
  // process group that any thread may drive. The same on all ranks.
  virtual bool needs_progress() const { return true; }
  // Local. The current call and all later ones return `reason`. Its code must be kComm or kTimeout,
  // because the ranks may no longer be in step. Other ranks notice at their deadline, or earlier if
  // the implementation can notify them.
  virtual void Interrupt(const Status& reason) = 0;

 protected:
  BackgroundCommunicator() = default;
};

// A group of processes. Metadata travels through it, the payload of a save never does.
// Implementations: SelfCommunicator, ThreadCommunicators, MpiCommunicator
// (sealpoint/mpi_communicator.h), or the caller's own.
//
// Every function that is not a plain accessor is collective: all ranks call it, in the same order.
// A rank that fails continues to take part (see AgreeOnStatus). Each call returns within the
// deadline. After Timeout or Comm the communicator must not be used again, because the ranks may no
// longer be in step. Messages may exceed 2 GiB.
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

  // Local. Sets the maximum duration of one collective call, after which it returns Timeout;
  // kForever: no limit. Default: kDefaultDeadline. Set the same value on all ranks.
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;

  // True if the program compares every collective call between the ranks before making it, as the
  // Python package does. The library then skips exchanges that would only repeat the comparison.
  // Must be the same on all ranks.
  virtual bool calls_are_compared() const { return false; }

  // All of the following functions may return Comm and Timeout.
  virtual Status Barrier() = 0;
  // Sends `bytes` from `root`; on other ranks `bytes` is replaced. Sizes may differ beforehand.
  virtual Status Broadcast(Bytes& bytes, int root) = 0;
  // Returns one entry per rank, in rank order, on `root`; an empty vector on other ranks.
  virtual Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) = 0;
  // Like Gather, on every rank.
  virtual Result<std::vector<Bytes>> AllGather(ByteSpan bytes) = 0;
  // `outgoing` has one entry per destination rank; returns one entry per source rank. It is passed
  // by value so that large messages can be moved in; an implementation may send from that memory
  // directly.
  virtual Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) = 0;
  // Element-wise maximum over the ranks; all ranks pass the same number of values.
  virtual Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) = 0;

  // Creates a communicator of the same ranks for background saves (Saver::SaveAsync). Messages of
  // the two never mix. It has the same deadline, counted for each call from the time that the
  // background thread makes it. If Progress executes the calls, time is counted as by
  // PolledDeadline: gaps between calls of Progress are not charged to other ranks. Errors: Comm,
  // Timeout; Unsupported (the default implementation).
  virtual Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground();

 protected:
  Communicator() = default;
};

// Agrees on one outcome. Each rank passes its own status, and all ranks return the same result. Use
// it around local work between two collective calls, so that a rank that fails does not leave the
// others waiting. Collective: all ranks call it regardless of their outcome.
//
// Returns success if all ranks pass success. Otherwise every rank gets the Status of the lowest
// rank that failed, with that rank and its host as the place (unless the status already names one),
// and with its OutcomeIsUnknown. Costs one AllReduceMax of one number; a failure also costs one
// Broadcast.
//
// Further errors: Comm, Timeout. If the communicator itself fails, results may differ: each rank
// returns its own error, or the communicator's error if it had none.
SEALPOINT_EXPORT Status AgreeOnStatus(Communicator& comm, const Status& local_status);

// A communicator of one rank. It exchanges no messages.
SEALPOINT_EXPORT std::unique_ptr<Communicator> SelfCommunicator();

// Returns `size` communicators, one per rank, for threads of this process. Their shared state lives
// as long as the last of them. Precondition: size >= 1.
SEALPOINT_EXPORT std::vector<std::unique_ptr<Communicator>> ThreadCommunicators(int size);

}  // namespace sealpoint

#endif  // SEALPOINT_COMMUNICATOR_H_
