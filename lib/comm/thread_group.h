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

// What one rank brings to one collective call. Owned by the round, since the rank that brought it
// may leave at its deadline while others read it.
struct Contribution {
  Collective collective = Collective::kBarrier;
  int root = 0;  // 0 where the collective has none
  std::vector<Bytes> parts;
  std::vector<std::uint64_t> numbers;
};

// All contributions of one call, by rank.
using Round = std::vector<std::shared_ptr<const Contribution>>;

// The meeting place of the ranks of ThreadCommunicators: every collective is one round, in which
// each rank leaves its contribution and takes away those of all.
//
// Invariant: a round is complete when `waiting_` has an entry for every rank. It cannot be
// overtaken, because the next one needs every rank and none comes before it has taken its result.
class ThreadGroup {
 public:
  explicit ThreadGroup(int size)
      : waiting_(static_cast<std::size_t>(size)),
        left_(waiting_.size()),
        duplicate_counts_(waiting_.size()) {}

  // Errors: Timeout, where a rank waited longer than `deadline` (zero: no limit), and Comm, where
  // a rank left, or a call is wrong or not the same on all ranks. After the first error the group
  // is broken: all ranks get that error, those that wait now and those that come later.
  Result<std::shared_ptr<const Round>> Meet(int rank, Contribution contribution,
                                            std::chrono::milliseconds deadline);

  // The rank will not come any more, which breaks the group for the others.
  void Leave(int rank);
  // The same, where the rank itself gets `why`, for a call that it is in as well.
  void Leave(int rank, const Status& why);

  // The group of the same ranks that this rank's n-th call returns, the same for all of them.
  std::shared_ptr<ThreadGroup> Duplicate(int rank);

 private:
  // With the mutex held.
  void Complete();
  void Break(Status why);
  const Status& WhyBroken(int rank) const;

  std::mutex mutex_;
  std::condition_variable changed_;
  Round waiting_;
  int waiting_count_ = 0;
  std::uint64_t rounds_ = 0;  // completed so far
  std::shared_ptr<const Round> last_round_;
  Status broken_;
  std::vector<Status> left_;  // by rank; success where it is there, or left without a reason
  std::vector<std::size_t> duplicate_counts_;  // by rank
  std::vector<std::shared_ptr<ThreadGroup>> duplicates_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_COMM_THREAD_GROUP_H_
