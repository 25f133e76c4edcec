// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/comm/host_name.h"
#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint {
namespace internal::comm {
namespace {

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

Result<std::shared_ptr<const Round>> ThreadGroup::Exchange(int rank, Contribution contribution,
                                                           std::chrono::milliseconds deadline) {
  auto own = std::make_shared<const Contribution>(std::move(contribution));
  std::unique_lock lock(mutex_);
  if (!broken_.ok()) return BreakReason(rank);
  const std::uint64_t round = rounds_;
  waiting_[static_cast<std::size_t>(rank)] = std::move(own);
  if (++waiting_count_ == static_cast<int>(waiting_.size())) Complete();

  const auto is_over = [&] { return rounds_ != round || !broken_.ok(); };
  if (deadline > kLongestDeadline) {
    changed_.wait(lock, is_over);
  } else if (!changed_.wait_for(lock, deadline, is_over)) {
    Break(MakeError(Code::kTimeout, "rank ", rank, " waited ", deadline.count(), " ms, and ",
                    waiting_.size() - static_cast<std::size_t>(waiting_count_), " of ",
                    waiting_.size(), " ranks did not arrive"));
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

class ThreadCommunicator final : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank, int size)
      : group_(std::move(group)), rank_(rank), size_(size) {}
  ~ThreadCommunicator() override { group_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const std::string& host() const override { return host_; }
  void set_deadline(std::chrono::milliseconds deadline) override { deadline_ = deadline; }

  Status Barrier() override { return Exchange({.collective = Collective::kBarrier}).status(); }
  Status Broadcast(Bytes& bytes, int root) override;
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override;
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override;
  Result<std::vector<Bytes>> AllToAll(std::vector<Bytes> outgoing) override;
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override;
  Result<std::unique_ptr<BackgroundCommunicator>> DuplicateForBackground() override;

 private:
  Result<std::shared_ptr<const Round>> Exchange(Contribution contribution) {
    return group_->Exchange(rank_, std::move(contribution), deadline_);
  }

  const std::shared_ptr<ThreadGroup> group_;
  const int rank_;
  const int size_;
  const std::string host_ = HostName();
  std::chrono::milliseconds deadline_ = kDefaultDeadline;
};

// The part of each rank's contribution that is meant for `destination`.
std::vector<Bytes> CollectParts(const Round& round, std::size_t destination) {
  std::vector<Bytes> parts;
  parts.reserve(round.size());
  for (const auto& contribution : round) parts.push_back(contribution->parts[destination]);
  return parts;
}

std::vector<Bytes> OnePart(ByteSpan bytes) { return {Bytes(bytes.begin(), bytes.end())}; }

Status ThreadCommunicator::Broadcast(Bytes& bytes, int root) {
  Contribution contribution{.collective = Collective::kBroadcast, .root = root};
  if (rank_ == root) contribution.parts = OnePart(bytes);
  SEALPOINT_ASSIGN_OR_RETURN(const auto round, Exchange(std::move(contribution)));
  if (rank_ != root) bytes = (*round)[static_cast<std::size_t>(root)]->parts.front();
  return {};
}

Result<std::vector<Bytes>> ThreadCommunicator::Gather(ByteSpan bytes, int root) {
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto round,
      Exchange({.collective = Collective::kGather, .root = root, .parts = OnePart(bytes)}));
  if (rank_ != root) return std::vector<Bytes>();
  return CollectParts(*round, 0);
}

Result<std::vector<Bytes>> ThreadCommunicator::AllGather(ByteSpan bytes) {
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto round, Exchange({.collective = Collective::kAllGather, .parts = OnePart(bytes)}));
  return CollectParts(*round, 0);
}

Result<std::vector<Bytes>> ThreadCommunicator::AllToAll(std::vector<Bytes> outgoing) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto round, Exchange({.collective = Collective::kAllToAll,
                                                         .parts = std::move(outgoing)}));
  return CollectParts(*round, static_cast<std::size_t>(rank_));
}

Result<std::vector<std::uint64_t>> ThreadCommunicator::AllReduceMax(
    const std::vector<std::uint64_t>& values) {
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto round, Exchange({.collective = Collective::kAllReduceMax, .numbers = values}));
  std::vector<std::uint64_t> greatest = values;
  for (const auto& contribution : *round) {
    std::transform(greatest.begin(), greatest.end(), contribution->numbers.begin(),
                   greatest.begin(),
                   [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
  }
  return greatest;
}

// The collectives of threads complete by themselves, so that any thread may call them and Progress
// has nothing to do.
class ThreadInBackground final : public BackgroundCommunicator {
 public:
  ThreadInBackground(std::shared_ptr<ThreadGroup> group, int rank, int size)
      : group_(group), communicator_(std::move(group), rank, size) {}

  Communicator& communicator() override { return communicator_; }
  bool Progress() override { return false; }
  bool needs_progress() const override { return false; }
  void Interrupt(const Status& reason) override { group_->Leave(communicator_.rank(), reason); }

 private:
  const std::shared_ptr<ThreadGroup> group_;
  ThreadCommunicator communicator_;
};

Result<std::unique_ptr<BackgroundCommunicator>> ThreadCommunicator::DuplicateForBackground() {
  SEALPOINT_RETURN_IF_ERROR(Barrier());
  auto duplicate = std::make_unique<ThreadInBackground>(group_->Duplicate(rank_), rank_, size_);
  duplicate->communicator().set_deadline(deadline_);
  return std::unique_ptr<BackgroundCommunicator>(std::move(duplicate));
}

}  // namespace
}  // namespace internal::comm

std::vector<std::unique_ptr<Communicator>> ThreadCommunicators(int size) {
  SEALPOINT_CHECK(size >= 1);
  auto group = std::make_shared<internal::comm::ThreadGroup>(size);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(
        std::make_unique<internal::comm::ThreadCommunicator>(group, rank, size));
  }
  return communicators;
}

}  // namespace sealpoint
