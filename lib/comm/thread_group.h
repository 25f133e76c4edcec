// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMM_THREAD_GROUP_H_
#define SEALPOINT_LIB_COMM_THREAD_GROUP_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

enum class Collective : std::uint8_t {
  kBarrier,
  kBroadcast,
  kGather,
  kAllGather,
  kAllToAll,
  kAllReduceMax,
};

// One rank's input to one collective call. Owned by the round, since the rank may leave at its
// deadline while others still read it.
struct Contribution {
  Collective collective = Collective::kBarrier;
  int root = 0;  // 0 if the collective has no root
  std::vector<Bytes> parts;
  std::vector<std::uint64_t> numbers;
};

// All contributions of one call, by rank.
using Round = std::vector<std::shared_ptr<const Contribution>>;

// The state that the ranks of ThreadCommunicators share. Every collective is one round, to which
// each rank contributes and from which it gets the contributions of all.
//
// Invariant: a round is complete when `waiting_` has an entry for every rank. No round can be
// overtaken, because the next one needs every rank, and a rank joins it only after it has its
// result of this one.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size)
      : waiting_(static_cast<std::size_t>(size)),
        left_(waiting_.size()),
        duplicate_counts_(waiting_.size()) {}

  // Contributes to the next round and waits for it. Errors: Timeout if a rank waited longer than
  // `deadline` (zero: no limit); Comm if a rank left, or if a call is wrong or not the same on all
  // ranks. After the first error the group is broken: all ranks get that error, those that wait now
  // and those that call later.
  Result<std::shared_ptr<const Round>> Exchange(int rank, Contribution contribution,
                                                std::chrono::milliseconds deadline);

  // The rank will not call again, which breaks the group for the others.
  void Leave(int rank);
  // The same, and the rank itself gets `reason` from its calls, including the one under way.
  void Leave(int rank, const Status& reason);

  // Each rank's n-th call returns the same group, the n-th duplicate of this one.
  std::shared_ptr<ThreadGroup> Duplicate(int rank);

 private:
  // Precondition of all three: the mutex is held.
  void Complete();
  void Break(Status reason);
  const Status& BreakReason(int rank) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  Round waiting_;
  int waiting_count_ = 0;
  std::uint64_t rounds_ = 0;  // completed so far
  std::shared_ptr<const Round> last_round_;
  Status broken_;
  std::vector<Status> left_;  // by rank; success if the rank is there or left without a reason
  std::vector<std::size_t> duplicate_counts_;  // by rank
  std::vector<std::shared_ptr<ThreadGroup>> duplicates_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_COMM_THREAD_GROUP_H_
