// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/thread_group.h"

#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// Longer deadlines would overflow the clock and mean "for ever".
constexpr std::chrono::milliseconds kLongestDeadline = std::chrono::hours(24 * 3650);

std::string_view NameOf(Collective collective) {
  switch (collective) {
    case Collective::kBarrier:
      return "Barrier";
    case Collective::kBroadcast:
      return "Broadcast";
    case Collective::kGather:
      return "Gather";
    case Collective::kAllGather:
      return "AllGather";
    case Collective::kAllToAll:
      return "AllToAll";
    case Collective::kAllReduceMax:
      return "AllReduceMax";
  }
  return "an unknown call";
}

// Checks a rank's call by itself.
Status CheckCall(const Contribution& call, std::size_t rank, std::size_t size) {
  // As an unsigned number a negative root is not below any size.
  if (static_cast<std::size_t>(call.root) >= size) {
    return MakeError(Code::kComm, "root of rank ", rank, " is ", call.root, ", expected below ",
                     size);
  }
  if (call.collective == Collective::kAllToAll && call.parts.size() != size) {
    return MakeError(Code::kComm, "rank ", rank, " has ", call.parts.size(), " messages, expected ",
                     size);
  }
  return {};
}

// The ranks must be in the same call with the same root and, for a reduction, the same count: a
// rank that has left the common sequence of collectives is an error here, while MPI would pair the
// calls or hang.
Status CheckSameCall(const Round& round) {
  const Contribution& first = *round.front();
  for (std::size_t rank = 0; rank < round.size(); ++rank) {
    const Contribution& other = *round[rank];
    SEALPOINT_RETURN_IF_ERROR(CheckCall(other, rank, round.size()));
    if (other.collective != first.collective || other.root != first.root) {
      return MakeError(Code::kComm, "rank 0 is in ", NameOf(first.collective), " with root ",
                       first.root, ", rank ", rank, " in ", NameOf(other.collective), " with root ",
                       other.root);
    }
    if (other.numbers.size() != first.numbers.size()) {
      return MakeError(Code::kComm, "rank 0 reduces ", first.numbers.size(), " numbers, rank ",
                       rank, " ", other.numbers.size());
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Round>> ThreadGroup::Exchange(int rank, Contribution contribution,
                                                           std::chrono::milliseconds deadline) {
  auto own = std::make_shared<const Contribution>(std::move(contribution));
  std::unique_lock lock(mutex_);
  if (!broken_.ok()) return BreakReason(rank);
  const std::uint64_t round = rounds_;
  waiting_[static_cast<std::size_t>(rank)] = std::move(own);
  if (++waiting_count_ == static_cast<int>(waiting_.size())) Complete();

  const auto is_over = [&] { return rounds_ != round || !broken_.ok(); };
  if (deadline <= std::chrono::milliseconds::zero() || deadline > kLongestDeadline) {
    changed_.wait(lock, is_over);
  } else if (!changed_.wait_for(lock, deadline, is_over)) {
    Break(MakeError(Code::kTimeout, "rank ", rank, " waited ", deadline.count(), " ms, and ",
                    waiting_.size() - static_cast<std::size_t>(waiting_count_), " of ",
                    waiting_.size(), " ranks did not come"));
  }
  // A completed round counts even if the group was broken since: other ranks have returned success
  // from it, and this one must not disagree. `last_round_` is still this round, since the next one
  // cannot complete without this rank.
  if (rounds_ != round) return last_round_;
  return BreakReason(rank);
}

const Status& ThreadGroup::BreakReason(int rank) const {
  const Status& local_reason = left_[static_cast<std::size_t>(rank)];
  return local_reason.ok() ? broken_ : local_reason;
}

void ThreadGroup::Complete() {
  if (Status same = CheckSameCall(waiting_); !same.ok()) return Break(std::move(same));
  last_round_ = std::make_shared<const Round>(std::exchange(waiting_, Round(waiting_.size())));
  waiting_count_ = 0;
  ++rounds_;
  changed_.notify_all();
}

void ThreadGroup::Leave(int rank) {
  const std::lock_guard lock(mutex_);
  Break(MakeError(Code::kComm, "rank ", rank, " left"));
}

void ThreadGroup::Leave(int rank, const Status& reason) {
  const std::lock_guard lock(mutex_);
  Status& local_reason = left_[static_cast<std::size_t>(rank)];
  if (local_reason.ok()) local_reason = reason;
  Break(MakeError(Code::kComm, "rank ", rank, " left: ", reason.message()));
}

std::shared_ptr<ThreadGroup> ThreadGroup::Duplicate(int rank) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = duplicate_counts_[static_cast<std::size_t>(rank)]++;
  if (number == duplicates_.size()) {
    duplicates_.push_back(std::make_shared<ThreadGroup>(static_cast<int>(waiting_.size())));
  }
  return duplicates_[number];
}

void ThreadGroup::Break(Status reason) {
  if (!broken_.ok()) return;
  broken_ = std::move(reason);
  changed_.notify_all();
}

}  // namespace sealpoint::internal
