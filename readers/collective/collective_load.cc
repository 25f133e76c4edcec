// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/collective_load.h"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "readers/load/copy_out.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {
namespace {

constexpr std::uint64_t kStripeSizeBytes = 32 * kMiB;
constexpr std::uint64_t kRangeSizeMax = 8 * kMiB;
// malloc keeps blocks of this size for reuse; larger ones would be mapped, and page by page faulted
// in, for every exchange.
constexpr std::uint64_t kExchangeSizeMax = 8 * kMiB;

}  // namespace

void CollectiveLoad::SortChunks(const ReadingOrder& order) {
  for (const PlanRange& range : ranges_.shared) {
    for (std::size_t i = range.first_chunk; i < range.first_chunk + range.chunk_count; ++i) {
      own_.push_back({order.PositionOf(range.blob, plan_.chunks[i].offset), i, range.blob});
    }
  }
  std::sort(own_.begin(), own_.end(),
            [](const OwnChunk& a, const OwnChunk& b) { return a.position < b.position; });
  for (const std::string_view name : plan_.names) {
    tensors_.push_back(checkpoint_.index().FindTensor(name).value_or(0));
  }
}

// The largest window in which no rank receives or reads more than its share of memory, except for a
// single chunk that is larger. Every rank proposes where its own share ends; the least counts.
Result<ReadingWindow> CollectiveLoad::AgreeOnWindow(std::uint64_t begin, std::uint64_t end) const {
  std::uint64_t local_end = end;
  std::uint64_t received = 0;
  for (std::size_t i = next_; i < own_.size(); ++i) {
    const std::uint64_t raw_size = plan_.chunks[own_[i].chunk].raw_size;
    if (i > next_ && received + raw_size > share()) {
      local_end = own_[i].position;
      break;
    }
    received += raw_size;
  }
  const auto ranks = static_cast<std::uint64_t>(comm_.size());
  if (share() < (end - begin) / ranks) local_end = std::min(local_end, begin + ranks * share());
  // The minimum over all ranks, as the complement of a maximum.
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> maxima,
                             comm_.AllReduceMax({~local_end}));
  return ReadingWindow{.begin = begin, .end = ~maxima.front()};
}

Result<RequestedChunks> CollectiveLoad::AskReaders(const ReadingWindow& window,
                                                   Expected& expected) {
  std::vector<OwnChunk> wanted;
  for (; next_ < own_.size() && own_[next_].position < window.end; ++next_) {
    wanted.push_back(own_[next_]);
  }
  // In the order in which the reader will send them: ExchangeChunks matches by position alone.
  std::sort(wanted.begin(), wanted.end(),
            [](const OwnChunk& a, const OwnChunk& b) { return a.chunk < b.chunk; });
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm_.size()));
  for (const OwnChunk& one : wanted) {
    const auto reader = static_cast<std::size_t>(window.ReaderOf(one.position, comm_.size()));
    const PlanChunk& chunk = plan_.chunks[one.chunk];
    ChunkParts parts = ChunkParts::NeededBy(plan_, chunk);
    EncodeRequest(
        {.blob = one.blob, .tensor = tensors_[chunk.name], .chunk = chunk, .parts = parts},
        outgoing[reader]);
    expected[reader].push_back({.chunk = one.chunk, .parts = std::move(parts)});
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm_.AllToAll(outgoing));
  std::vector<std::vector<ChunkRequest>> requests;
  for (const Bytes& message : incoming) {
    SEALPOINT_ASSIGN_OR_RETURN(auto one, DecodeRequests(message, checkpoint_.index()));
    requests.push_back(std::move(one));
  }
  return MergeRequests(requests, checkpoint_.index(), kRangeSizeMax);
}

Status CollectiveLoad::ReadRequested(const RequestedChunks& requested,
                                     std::vector<Bytes>& held) const {
  const PlanChunk* const first = requested.plan.chunks.data();
  return checkpoint_.ReadChunks(
      requested.plan, options_.threads, [&](const PlanChunk& chunk, ByteSpan raw) {
        held[static_cast<std::size_t>(&chunk - first)].assign(raw.begin(), raw.end());
        return Status();
      });
}

Result<ReadingOrder> CollectiveLoad::PutInOrder() {
  SEALPOINT_ASSIGN_OR_RETURN(RequestedBytes requested, JoinRequests(comm_, plan_));
  if (!options_.pass_on) requested.shared.clear();
  all_bytes_requested_ = requested.size_bytes;
  ranges_ = DivideRanges(plan_, requested.shared);
  ReadingOrder order(requested.shared, kStripeSizeBytes);
  SortChunks(order);
  return order;
}

Result<CollectiveLoad::Round> CollectiveLoad::AgreeOnRound(std::uint64_t begin, std::uint64_t end) {
  Round round;
  round.expected.resize(static_cast<std::size_t>(comm_.size()));
  SEALPOINT_ASSIGN_OR_RETURN(const ReadingWindow window, AgreeOnWindow(begin, end));
  SEALPOINT_ASSIGN_OR_RETURN(round.requested, AskReaders(window, round.expected));
  round.end = window.end;
  return round;
}

Status CollectiveLoad::OpenDevices() {
  if (plan_.streams.empty()) return {};
  SEALPOINT_ASSIGN_OR_RETURN(copies_, CopiesToDevices::Open(plan_, checkpoint_.devices()));
  return {};
}

// Given back before the next round reads: memory that is held meanwhile may be what a range needs.
Status CollectiveLoad::TakeStaging() {
  constexpr std::size_t kBufferCount = 2;
  if (copies_ == nullptr || !staging_.empty()) return {};
  const std::uint64_t size =
      std::min(StagingBufferBytes(plan_, false), checkpoint_.range_size_max_bytes());
  SEALPOINT_ASSIGN_OR_RETURN(staging_,
                             checkpoint_.PinnedPool().AcquireScratch(kBufferCount * size));
  copies_->UseStaging(staging_.bytes(), kBufferCount);
  return {};
}

void CollectiveLoad::FinishCopies() {
  if (copies_ == nullptr || !delivered_.ok()) return;
  delivered_ = copies_->queued().WaitForAll();
  if (!delivered_.ok()) return;
  copies_->UseStaging({}, 0);
  staging_ = StagingBuffer();
}

// After an element that cannot be converted this rank takes no more data, but it stays in the
// sequence of exchanges until the next agreement, so that no other rank waits for it.
void CollectiveLoad::Deliver(const ExpectedChunk& expected, ByteSpan packed) {
  if (!delivered_.ok()) return;
  const PlanChunk& one = plan_.chunks[expected.chunk];
  ByteSpan raw = packed;
  if (packed.size() != one.raw_size) {
    unpacked_.resize(one.raw_size);
    expected.parts.Unpack(packed, unpacked_);
    raw = unpacked_;
  }
  Status status = [&]() -> Status {
    SEALPOINT_RETURN_IF_ERROR(TakeStaging());
    return CopyOut(plan_, one, raw, copies_.get());
  }();
  if (status.ok()) return;
  delivered_ =
      Status(std::move(status).AtPath(checkpoint_.BlobPath(one.blob)).AtOffset(one.offset));
}

Status CollectiveLoad::Run(PhaseRecorder& phases, CollectiveLoadReport& report) {
  SEALPOINT_ASSIGN_OR_RETURN(const ReadingOrder order, PutInOrder());
  report.all_bytes_wanted = all_bytes_requested_;
  phases.Begin(Phase::kRead, plan_.summary.bytes_read);
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, ReadAlone(phases, report)));
  delivered_ = order.size_bytes() > 0 ? OpenDevices() : Status();
  std::uint64_t bytes_done = report.bytes_read;
  for (std::uint64_t begin = 0; begin < order.size_bytes();) {
    SEALPOINT_ASSIGN_OR_RETURN(const Round round, AgreeOnRound(begin, order.size_bytes()));
    std::vector<Bytes> held(round.requested.plan.chunks.size());
    SEALPOINT_RETURN_IF_ERROR(
        AgreeOnStatus(comm_, delivered_.ok() ? ReadRequested(round.requested, held) : delivered_));
    report.bytes_read += round.requested.plan.summary.bytes_read;
    SEALPOINT_ASSIGN_OR_RETURN(const ExchangeTotals exchanged,
                               ExchangeChunks(comm_, round.requested, std::move(held),
                                              round.expected, std::min(share(), kExchangeSizeMax),
                                              [&](const ExpectedChunk& expected, ByteSpan packed) {
                                                Deliver(expected, packed);
                                                bytes_done +=
                                                    plan_.chunks[expected.chunk].stored_size;
                                              }));
    FinishCopies();
    phases.Progress(bytes_done);
    SEALPOINT_RETURN_IF_ERROR(
        AgreeOnStatus(comm_, delivered_.ok() ? phases.failure() : delivered_));
    report.bytes_received += exchanged.bytes_received;
    report.rounds += exchanged.exchanges;
    begin = round.end;
  }
  phases.End();
  return {};
}

// Nothing would be gained by passing these bytes on: each would travel that need not.
Status CollectiveLoad::ReadAlone(PhaseRecorder& phases, CollectiveLoadReport& report) const {
  if (ranges_.alone.empty()) return {};
  const auto read = checkpoint_.RunRanges(plan_, ranges_.alone, {.threads = options_.threads},
                                          options_.memory_budget_bytes, phases);
  SEALPOINT_RETURN_IF_ERROR(read.status());
  for (const PlanRange& range : ranges_.alone) report.bytes_read += range.size;
  return phases.failure();
}

Result<RankLoad> CollectiveLoad::DryRun() {
  SEALPOINT_ASSIGN_OR_RETURN(const ReadingOrder order, PutInOrder());
  RankLoad load{.host = comm_.host(), .alone = plan_.summary};
  std::set<std::uint32_t> blobs;
  const auto add = [&](const std::vector<PlanRange>& ranges) {
    for (const PlanRange& range : ranges) {
      blobs.insert(range.blob);
      load.bytes_read += range.size;
    }
    load.requests += ranges.size();
  };
  add(ranges_.alone);
  for (std::uint64_t begin = 0; begin < order.size_bytes();) {
    SEALPOINT_ASSIGN_OR_RETURN(const Round round, AgreeOnRound(begin, order.size_bytes()));
    add(round.requested.plan.ranges);
    begin = round.end;
  }
  load.files = blobs.size();
  return load;
}

}  // namespace sealpoint::internal
