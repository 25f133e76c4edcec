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

void EncodeRanges(std::span<const BlobBytes> ranges, WireWriter& out) {
  for (const BlobBytes& range : ranges) {
    out.Put(std::uint64_t{range.blob});
    out.Put(range.begin);
    out.Put(range.end);
  }
}

Status DecodeRanges(ByteSpan bytes, std::vector<BlobBytes>& ranges) {
  WireReader in(bytes);
  while (!in.at_end()) {
    BlobBytes range;
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(range.begin, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(range.end, in.Number());
    range.blob = static_cast<std::uint32_t>(blob);
    ranges.push_back(range);
  }
  return {};
}

std::uint64_t SizeOf(std::span<const BlobBytes> ranges) {
  std::uint64_t size = 0;
  for (const BlobBytes& range : ranges) size += range.end - range.begin;
  return size;
}

// The ranges that ranks request.
struct RequestedBytes {
  std::vector<BlobBytes> ranges{};  // a UnionOf
  bool is_shared = false;           // two ranks request the same byte
};

// Of messages that hold ranges without overlaps, after `has_flag` each its own is_shared.
Result<RequestedBytes> JoinRanges(const std::vector<Bytes>& messages, bool has_flag) {
  RequestedBytes joined;
  std::vector<BlobBytes> ranges;
  for (const Bytes& message : messages) {
    ByteSpan bytes = message;
    if (has_flag) {
      if (bytes.empty()) return MalformedMessage();
      if (bytes.front() != std::byte{0}) joined.is_shared = true;
      bytes = bytes.subspan(1);
    }
    SEALPOINT_RETURN_IF_ERROR(DecodeRanges(bytes, ranges));
  }
  const std::uint64_t size = SizeOf(ranges);
  joined.ranges = UnionOf(std::move(ranges));
  if (SizeOf(joined.ranges) != size) joined.is_shared = true;
  return joined;
}

// The ranges that any rank requests. Those of a blob are joined at rank (blob mod size), then all
// ranks get the result; so no rank ever holds the ranges of all ranks before they are joined.
Result<RequestedBytes> JoinAll(Communicator& comm, const ReadPlanData& plan) {
  std::vector<BlobBytes> local_ranges;
  for (const PlanRange& range : plan.ranges) {
    local_ranges.push_back({range.blob, range.offset, range.offset + range.size});
  }
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm.size()));
  for (const BlobBytes& range : UnionOf(std::move(local_ranges))) {
    WireWriter out(outgoing[range.blob % outgoing.size()]);
    EncodeRanges({&range, 1}, out);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm.AllToAll(outgoing));
  SEALPOINT_ASSIGN_OR_RETURN(const RequestedBytes joined, JoinRanges(incoming, false));
  Bytes bytes = {joined.is_shared ? std::byte{1} : std::byte{0}};
  WireWriter out(bytes);
  EncodeRanges(joined.ranges, out);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  return JoinRanges(all, true);
}

}  // namespace

void CollectiveLoad::SortChunks(const ReadingOrder& order) {
  for (const PlanRange& range : plan_.ranges) {
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
  SEALPOINT_ASSIGN_OR_RETURN(const RequestedBytes requested, JoinAll(comm_, plan_));
  is_shared_ = requested.is_shared;
  ReadingOrder order(requested.ranges, kStripeSizeBytes);
  if (is_shared_) SortChunks(order);
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
  const auto behind = std::upper_bound(
      plan_.ranges.begin(), plan_.ranges.end(), expected.chunk,
      [](std::size_t at, const PlanRange& range) { return at < range.first_chunk; });
  delivered_ = Status(
      std::move(status).AtPath(checkpoint_.BlobPath(std::prev(behind)->blob)).AtOffset(one.offset));
}

Status CollectiveLoad::Run(PhaseRecorder& phases, CollectiveLoadReport& report) {
  SEALPOINT_ASSIGN_OR_RETURN(const ReadingOrder order, PutInOrder());
  report.all_bytes_wanted = order.size_bytes();
  phases.Begin(Phase::kRead, plan_.summary.bytes_read);
  if (!is_shared_) return ReadAlone(phases, report);
  delivered_ = OpenDevices();
  std::uint64_t bytes_done = 0;
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
    SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, delivered_));
    phases.Progress(bytes_done);
    report.bytes_received += exchanged.bytes_received;
    report.rounds += exchanged.exchanges;
    begin = round.end;
  }
  phases.End();
  return {};
}

// Nothing would be gained by passing bytes on: each would travel that need not.
Status CollectiveLoad::ReadAlone(PhaseRecorder& phases, CollectiveLoadReport& report) const {
  const auto read =
      checkpoint_.Run(plan_, {.threads = options_.threads}, options_.memory_budget_bytes, phases);
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, read.status()));
  report.bytes_read = plan_.summary.bytes_read;
  return {};
}

Result<RankLoad> CollectiveLoad::DryRun() {
  SEALPOINT_ASSIGN_OR_RETURN(const ReadingOrder order, PutInOrder());
  RankLoad load{.host = comm_.host(), .alone = plan_.summary};
  std::set<std::uint32_t> blobs;
  if (!is_shared_) {
    for (const PlanRange& range : plan_.ranges) blobs.insert(range.blob);
    load.bytes_read = plan_.summary.bytes_read;
    load.requests = plan_.ranges.size();
    load.files = blobs.size();
    return load;
  }
  for (std::uint64_t begin = 0; begin < order.size_bytes();) {
    SEALPOINT_ASSIGN_OR_RETURN(const Round round, AgreeOnRound(begin, order.size_bytes()));
    load.bytes_read += round.requested.plan.summary.bytes_read;
    load.requests += round.requested.plan.ranges.size();
    for (const PlanRange& range : round.requested.plan.ranges) blobs.insert(range.blob);
    begin = round.end;
  }
  load.files = blobs.size();
  return load;
}

}  // namespace sealpoint::internal
