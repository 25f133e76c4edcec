// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/macros.h"
#include "lib/comm/host_name.h"
#include "lib/comm/thread_group.h"
#include "sealpoint/communicator.h"

namespace sealpoint {
namespace internal {
namespace {

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
}  // namespace internal

std::vector<std::unique_ptr<Communicator>> ThreadCommunicators(int size) {
  SEALPOINT_CHECK(size >= 1);
  auto group = std::make_shared<internal::ThreadGroup>(size);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) {
    communicators.push_back(std::make_unique<internal::ThreadCommunicator>(group, rank, size));
  }
  return communicators;
}

}  // namespace sealpoint
