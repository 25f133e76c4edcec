// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_COMMUNICATOR_H_
#define SEALPOINT_COMMUNICATOR_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint {

class Communicator;

// A communicator for one background thread (Communicator::DuplicateForBackground). The background
// thread makes the collective calls. If only the program's own thread may communicate, as with MPI
// below MPI_THREAD_MULTIPLE, this thread calls Progress regularly, and Progress executes the
// background thread's calls.
//
// Thread safety: Progress and Interrupt may be called while the background thread is in a call to
// communicator(). Destroy the object only after the background thread has ended or has made its
// last call.
class SEALPOINT_EXPORT BackgroundCommunicator {
 public:
  virtual ~BackgroundCommunicator() = default;
  BackgroundCommunicator(const BackgroundCommunicator&) = delete;
  BackgroundCommunicator& operator=(const BackgroundCommunicator&) = delete;

  // Only the background thread may use the returned communicator, but any thread may call its
  // rank(), size() and host().
  virtual Communicator& communicator() = 0;
  // Local. Advances, without waiting, the call that the background thread is making. Ranks need not
  // call Progress equally often, but the background thread's call cannot complete on any rank until
  // every rank has started it. Returns true if the background thread's call made progress; it may
  // then make more if Progress is called again immediately.
  virtual bool Progress() = 0;
  // False if the background thread's calls complete without Progress, for example because ranks are
  // threads, or because any thread may communicate. The value is the same on all ranks.
  virtual bool needs_progress() const { return true; }
  // Local. Ends the current call of the background thread, and all later calls, with `reason`. The
  // code of `reason` must be kComm or kTimeout, because the ranks may no longer be in step. Other
  // ranks notice the interruption when their deadline expires, or earlier if the implementation can
  // notify them.
  virtual void Interrupt(const Status& reason) = 0;

 protected:
  BackgroundCommunicator() = default;
};

// A group of processes that exchange messages. Saves send only metadata through it, never payload.
// Implementations: SelfCommunicator, ThreadCommunicators, MpiCommunicator
// (sealpoint/mpi_communicator.h), or the caller's own.
//
// All functions except accessors and those marked as local are collective: all ranks must call them
// in the same order. A rank that fails must still take part (see AgreeOnStatus). Each call returns
// within the deadline. After a Timeout or Comm error the communicator must not be used again,
// because the ranks may no longer be in step. Messages may exceed 2 GiB.
//
// Thread safety: one call at a time.
class SEALPOINT_EXPORT Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;  // in [0, size())
  virtual int size() const = 0;
  virtual const std::string& host() const = 0;  // host name of this rank

  // Local. Sets the maximum duration of one collective call; a call that takes longer returns
  // Timeout. kForever: no limit. Default: kDefaultDeadline. Set the same value on all ranks.
  virtual void set_deadline(std::chrono::milliseconds deadline) = 0;

  // True if the program itself checks before every collective call that all ranks make the same
  // call; the Python package does so. The library then skips exchanges that would only repeat this
  // check. Must be the same on all ranks.
  virtual bool calls_are_compared() const { return false; }

  // All functions below may return Comm and Timeout.
  virtual Status Barrier() = 0;
  // Sends root's `bytes` to all other ranks. Each other rank's `bytes` are overwritten, whatever
  // their previous size.
  virtual Status Broadcast(Bytes& bytes, int root) = 0;
  // Sends each rank's `bytes` to `root`. Returns one entry per rank, in rank order, on `root`, and
  // an empty vector on all other ranks.
  virtual Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) = 0;
  // Like Gather, but every rank gets one entry per rank.
  virtual Result<std::vector<Bytes>> AllGather(ByteSpan bytes) = 0;
  // Sends entry i of `outgoing` to rank i. Returns one entry per source rank. `outgoing` is passed
  // by value so that the caller can move large messages into the call; an implementation may send
  // directly from that memory.
  virtual Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) = 0;
  // Returns the element-wise maximum over all ranks. All ranks pass the same number of values.
  virtual Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) = 0;

  // Creates a second communicator over the same ranks, for background saves (Saver::SaveAsync).
  // Messages of the two communicators never mix. The second communicator has the same deadline; for
  // each call, the time counts from the moment when the background thread makes the call. If
  // Progress executes the calls, time is counted as in PolledDeadline, so that a rank that rarely
  // calls Progress does not report other ranks as late. Errors: Comm, Timeout; Unsupported (the
  // default implementation).
  virtual Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground();

 protected:
  Communicator() = default;
};

// Agrees on one outcome. Each rank passes its own status, and all ranks return the same result.
// Call this function after local work that can fail, before the next collective call, so that a
// rank that fails does not leave the other ranks waiting. Collective: every rank calls it, even if
// its own work failed.
//
// Returns success if all ranks pass success. If any rank failed, every rank gets the Status of the
// lowest rank that failed, including its OutcomeIsUnknown. That rank and its host become part of
// the status's Place, unless the status already names a rank. The call costs one AllReduceMax of
// one number; if a rank failed, it also costs one Broadcast.
//
// Further errors: Comm, Timeout. If the communicator itself fails, results may differ between
// ranks: a rank returns its own error if it has one, and the communicator's error if it has none.
SEALPOINT_EXPORT Status AgreeOnStatus(Communicator& comm, const Status& local_status);

// Returns a communicator with one rank. It exchanges no messages.
SEALPOINT_EXPORT std::unique_ptr<Communicator> SelfCommunicator();

// Returns `size` communicators, one per rank, for threads of this process. The state that they
// share lives until the last of the communicators is destroyed. Precondition: size >= 1.
SEALPOINT_EXPORT std::vector<std::unique_ptr<Communicator>> ThreadCommunicators(int size);

}  // namespace sealpoint

#endif  // SEALPOINT_COMMUNICATOR_H_
