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
// thread makes the collective calls. In some programs, only the program's own thread may
// communicate, for example with MPI below MPI_THREAD_MULTIPLE. The program's own thread then calls
// Progress regularly, and Progress executes the calls of the background thread.
//
// Thread safety: Progress and Interrupt may be called while the background thread is executing a
// function of communicator(). Destroy the object only after the background thread has ended or has
// made its last call.
class SEALPOINT_EXPORT BackgroundCommunicator {
 public:
  virtual ~BackgroundCommunicator() = default;
  BackgroundCommunicator(const BackgroundCommunicator&) = delete;
  BackgroundCommunicator& operator=(const BackgroundCommunicator&) = delete;

  // Only the background thread may use the returned communicator, but any thread may call its
  // rank(), size() and host().
  virtual Communicator& communicator() = 0;
  // Local. Advances the current call of the background thread, without waiting. Ranks need not call
  // Progress equally often. The call of the background thread completes after every rank has
  // started this call. Returns true if the call made progress; an immediate second call of Progress
  // may then advance the call further.
  virtual bool Progress() = 0;
  // False if the background thread's calls complete without Progress, for example because ranks are
  // threads, or because any thread may communicate. The value is the same on all ranks.
  virtual bool needs_progress() const { return true; }
  // Local. Ends the current call of the background thread, and all later calls, with `reason`. The
  // code of `reason` must be kComm or kTimeout, because the ranks may no longer be synchronized.
  // Other ranks notice the interruption when their deadline expires, or earlier if the
  // implementation can notify them.
  virtual void Interrupt(const Status& reason) = 0;

 protected:
  BackgroundCommunicator() = default;
};

// A group of processes that exchange messages. Saves send only metadata through a communicator,
// never payload. Implementations: SelfCommunicator, ThreadCommunicators, MpiCommunicator
// (sealpoint/mpi_communicator.h), or the caller's own.
//
// Accessors and functions marked as local concern only one rank. All other functions are
// collective: all ranks must call them in the same order. A rank on which an operation failed must
// still make these calls (see AgreeOnStatus). Each call returns within the deadline. After a
// Timeout or Comm error the communicator must not be used again, because the ranks may no longer be
// synchronized. Messages may exceed 2 GiB.
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
  // call, as the Python package does. The library then skips exchanges that would only repeat this
  // check. All ranks must return the same value.
  virtual bool calls_are_compared() const { return false; }

  // All functions below may return Comm and Timeout.
  virtual Status Barrier() = 0;
  // Sends the `bytes` of rank `root` to all other ranks. On the other ranks, the call replaces
  // `bytes`, regardless of their previous size.
  virtual Status Broadcast(Bytes& bytes, int root) = 0;
  // Sends the `bytes` of each rank to `root`. On `root`, returns one entry per rank, in rank order.
  // On all other ranks, returns an empty vector.
  virtual Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) = 0;
  // Like Gather, but all ranks get the result.
  virtual Result<std::vector<Bytes>> AllGather(ByteSpan bytes) = 0;
  // Sends entry i of `outgoing` to rank i. Returns one entry per source rank. `outgoing` is passed
  // by value so that the caller can move large messages into the call; an implementation may send
  // directly from that memory.
  virtual Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) = 0;
  // Returns the element-wise maximum over all ranks. All ranks pass the same number of values.
  virtual Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) = 0;

  // Creates a second communicator over the same ranks, for background saves (Saver::SaveAsync).
  // Messages of the two communicators never mix. The second communicator has the same deadline. The
  // time of a call starts when the background thread makes the call. If Progress executes the
  // calls, time is counted as in PolledDeadline. A rank that rarely calls Progress therefore does
  // not report other ranks as late. Errors: Comm, Timeout; Unsupported (the default
  // implementation).
  virtual Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground();

 protected:
  Communicator() = default;
};

// Combines the statuses of all ranks into one. Each rank passes its own status, and all ranks
// return the same status. Call this function between local work that can fail and the next
// collective call. Otherwise, a rank that fails leaves the other ranks waiting. Collective: every
// rank calls this function, even if its own work failed.
//
// Returns success if all ranks pass success. If at least one rank failed, all ranks get the Status
// of the lowest failed rank, and OutcomeIsUnknown keeps its value. The Place of this Status names
// the failed rank and its host, unless the Status already named a rank. The call costs one
// AllReduceMax of one number; if a rank failed, it also costs one Broadcast.
//
// Further errors: Comm, Timeout. If the communicator itself fails, results may differ between
// ranks: a rank returns its own error if it has one, otherwise the error of the communicator.
SEALPOINT_EXPORT Status AgreeOnStatus(Communicator& comm, const Status& local_status);

// Returns a communicator with one rank. This communicator exchanges no messages.
SEALPOINT_EXPORT std::unique_ptr<Communicator> SelfCommunicator();

// Returns `size` communicators, one per rank, for threads of this process. Their shared state
// exists until the last of these communicators is destroyed. Precondition: size >= 1.
SEALPOINT_EXPORT std::vector<std::unique_ptr<Communicator>> ThreadCommunicators(int size);

}  // namespace sealpoint

#endif  // SEALPOINT_COMMUNICATOR_H_
