// SPDX-License-Identifier: Apache-2.0
#include "lib/comm/thread_group.h"

#include <string_view>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// What is longer would overflow the clock, and means "for ever".
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

// What a rank's call is wrong about by itself.
Status CheckCall(const Contribution& call, std::size_t rank, std::size_t size) {
  // As an unsigned number a negative root is not below any size.
  if (static_cast<std::size_t>(call.root) >= size) {
    return MakeError(Code::kComm, "rank ", rank, " names root ", call.root, " among ", size,
                     " ranks");
  }
  if (call.collective == Collective::kAllToAll && call.parts.size() != size) {
    return MakeError(Code::kComm, "rank ", rank, " has ", call.parts.size(), " messages for ", size,
                     " ranks");
  }
  return {};
}

// The ranks must be in the same call with the same root and, for a reduction, the same count.
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

Result<std::shared_ptr<const Round>> ThreadGroup::Meet(int rank, Contribution contribution,
                                                       std::chrono::milliseconds deadline) {
  auto own = std::make_shared<const Contribution>(std::move(contribution));
  std::unique_lock lock(mutex_);
  if (!broken_.ok()) return WhyBroken(rank);
  const std::uint64_t round = rounds_;
  waiting_[static_cast<std::size_t>(rank)] = std::move(own);
  if (++waiting_count_ == static_cast<int>(waiting_.size())) Complete();

  const auto is_over = [&] { return rounds_ != round || !broken_.ok(); };
  if (deadline <= std::chrono::milliseconds::zero() || deadline > kLongestDeadline) {
    changed_.wait(lock, is_over);
  } else if (!changed_.wait_for(lock, deadline, is_over)) {
    Break(MakeError(Code::kTimeout, "rank ", rank, " waited ", deadline.count(), " ms, and ",
                    waiting_.size() - static_cast<std::size_t>(waiting_count_),
                    " of the ranks did not come"));
  }
  // A completed round counts even if somebody broke the group since.
  if (rounds_ != round) return last_round_;
  return WhyBroken(rank);
}

const Status& ThreadGroup::WhyBroken(int rank) const {
  const Status& own = left_[static_cast<std::size_t>(rank)];
  return own.ok() ? broken_ : own;
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

void ThreadGroup::Leave(int rank, const Status& why) {
  const std::lock_guard lock(mutex_);
  Status& own = left_[static_cast<std::size_t>(rank)];
  if (own.ok()) own = why;
  Break(MakeError(Code::kComm, "rank ", rank, " left: ", why.message()));
}

std::shared_ptr<ThreadGroup> ThreadGroup::Duplicate(int rank) {
  const std::lock_guard lock(mutex_);
  const std::size_t number = duplicate_counts_[static_cast<std::size_t>(rank)]++;
  if (number == duplicates_.size()) {
    duplicates_.push_back(std::make_shared<ThreadGroup>(static_cast<int>(waiting_.size())));
  }
  return duplicates_[number];
}

void ThreadGroup::Break(Status why) {
  if (!broken_.ok()) return;
  broken_ = std::move(why);
  changed_.notify_all();
}

}  // namespace sealpoint::internal
