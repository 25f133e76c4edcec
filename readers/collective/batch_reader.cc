// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/batch_reader.h"

#include <utility>

#include "lib/base/macros.h"
#include "lib/transfer/send_delivery.h"

namespace sealpoint::internal::collective {
namespace {

// Which parts of which chunks a batch sends, and their places in its messages.
struct Packing {
  std::vector<transfer::SendDelivery::Chunk> chunks{};
  std::vector<transfer::SendDelivery::Part> parts{};

  Packing(const std::vector<ChunkToRead>& to_read, const ReadingBatch& batch,
          std::size_t rank_count, Outbox& outbox) {
    std::vector<std::uint64_t> sizes(rank_count);
    std::vector<std::size_t> ranks;  // of each part
    for (std::size_t i = batch.begin.chunk; i < to_read.size() && i <= batch.end.chunk; ++i) {
      const auto& requesters = to_read[i].requesters;
      const std::size_t end = i == batch.end.chunk ? batch.end.requester : requesters.size();
      chunks.push_back({.number = to_read[i].chunk, .first_part = parts.size()});
      for (std::size_t j = i == batch.begin.chunk ? batch.begin.requester : 0; j < end; ++j) {
        ranks.push_back(static_cast<std::size_t>(requesters[j].rank));
        sizes[ranks.back()] += requesters[j].parts.size_bytes();
        parts.push_back({.parts = &requesters[j].parts});
      }
      chunks.back().part_count = parts.size() - chunks.back().first_part;
    }
    std::vector<MutableByteSpan> rest = outbox.Allot(sizes);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      MutableByteSpan& message = rest[ranks[i]];
      parts[i].to = message.first(parts[i].parts->size_bytes());
      message = message.subspan(parts[i].to.size());
    }
  }
};

}  // namespace

BatchReader::BatchReader(const load::CheckpointImpl& checkpoint, const load::ReadPlanData& plan,
                         int threads, int rank_count)
    : plan_(plan),
      rank_count_(static_cast<std::size_t>(rank_count)),
      local_(plan, /*isolates=*/false),
      ranges_(checkpoint.OpenRanges(plan, threads, rank_count)) {}

Status BatchReader::Read(const std::vector<ChunkToRead>& to_read, const ReadingBatch& batch,
                         load::RangesAhead& ahead, BatchData& data) {
  Packing packing(to_read, batch, rank_count_, data.outbox);
  data.bytes_read = 0;
  std::size_t chunk_count = 0;
  for (const transfer::PlanRange& range : batch.ranges) {
    data.bytes_read += range.size;
    chunk_count += range.chunk_count;
  }
  // The batch before read the first chunk if this one does not begin with its first requester.
  std::size_t first_read = 0;
  if (batch.begin.requester > 0) {
    const transfer::SendDelivery::Chunk& sent = packing.chunks[first_read++];
    transfer::SendDelivery::Pack(sent, packing.parts, kept_);
  }
  if (batch.end.requester > 0) packing.chunks.back().kept = &kept_;
  data.held.assign(plan_.is_host_only() ? 0 : chunk_count, {});
  for (std::size_t i = 0; i < data.held.size(); ++i) {
    transfer::SendDelivery::Chunk& sent = packing.chunks[first_read + i];
    data.held[i].chunk = sent.number;
    sent.held = &data.held[i].raw;
  }
  transfer::SendDelivery send(plan_, std::move(packing.chunks), std::move(packing.parts), local_);
  return ranges_->Read(batch.ranges, send, ahead, batch.first_range);
}

}  // namespace sealpoint::internal::collective
