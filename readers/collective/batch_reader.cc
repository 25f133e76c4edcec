// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/batch_reader.h"

#include <algorithm>

#include "lib/base/macros.h"
#include "readers/load/copy_out.h"

namespace sealpoint::internal {

// Where the parts of a batch go in its messages.
struct BatchReader::Packing {
  const std::vector<ChunkToRead>& to_read;
  const ReadingBatch& batch;
  BatchData& data;
  std::vector<std::uint64_t> begins{};  // in the message of its requester, of each part
  std::vector<std::size_t> firsts{};    // in `begins`, of the first part of each chunk

  Packing(const std::vector<ChunkToRead>& chunks, const ReadingBatch& of, BatchData& into,
          std::size_t rank_count)
      : to_read(chunks), batch(of), data(into) {
    std::vector<std::uint64_t> sizes(rank_count);
    for (std::size_t i = batch.begin.chunk; i < to_read.size() && i <= batch.end.chunk; ++i) {
      firsts.push_back(begins.size());
      for (std::size_t j = FirstOf(i); j < EndOf(i); ++j) {
        const ChunkToRead::Requester& requester = to_read[i].requesters[j];
        std::uint64_t& size = sizes[static_cast<std::size_t>(requester.rank)];
        begins.push_back(size);
        size += requester.parts.size_bytes();
      }
    }
    data.messages.resize(rank_count);
    for (std::size_t rank = 0; rank < rank_count; ++rank) {
      SetSize(data.messages[rank], sizes[rank]);
    }
  }

  // Memory is used again, and may have had another size. It is replaced, not grown, where it is too
  // small, since growing copies what is not needed, and it is not kept where it is much too large.
  static void SetSize(Bytes& message, std::uint64_t size) {
    if (message.capacity() < size || message.capacity() / 2 > size) message = Bytes();
    message.resize(size);
  }

  // The requesters of a chunk that this batch serves.
  std::size_t FirstOf(std::size_t i) const {
    return i == batch.begin.chunk ? batch.begin.requester : 0;
  }
  std::size_t EndOf(std::size_t i) const {
    return i == batch.end.chunk ? batch.end.requester : to_read[i].requesters.size();
  }

  void Pack(std::size_t i, ByteSpan raw) const {
    for (std::size_t j = FirstOf(i); j < EndOf(i); ++j) {
      const ChunkToRead::Requester& requester = to_read[i].requesters[j];
      const std::uint64_t begin = begins[firsts[i - batch.begin.chunk] + j - FirstOf(i)];
      const MutableByteSpan message = data.messages[static_cast<std::size_t>(requester.rank)];
      requester.parts.Pack(raw, message.subspan(begin, requester.parts.size_bytes()));
    }
  }
};

BatchReader::BatchReader(const CheckpointImpl& checkpoint, const ReadPlanData& plan, int threads,
                         int rank_count, bool holds_own)
    : plan_(plan),
      rank_count_(static_cast<std::size_t>(rank_count)),
      holds_own_(holds_own),
      ranges_(checkpoint.OpenRanges(plan, threads)) {}

Status BatchReader::Read(const std::vector<ChunkToRead>& to_read, const ReadingBatch& batch,
                         RangesAhead& ahead, BatchData& data) {
  const Packing packing(to_read, batch, data, rank_count_);
  data.bytes_read = 0;
  std::size_t chunk_count = 0;
  for (const PlanRange& range : batch.ranges) {
    data.bytes_read += range.size;
    chunk_count += range.chunk_count;
  }
  data.own.assign(holds_own_ ? chunk_count : 0, {});
  if (batch.begin.requester > 0) packing.Pack(batch.begin.chunk, kept_);
  const auto take = [&](const PlanChunk& chunk, ByteSpan raw, bool is_in_place) {
    return Take(packing, chunk, raw, is_in_place);
  };
  return ranges_->Read(batch.ranges, take, ahead, batch.first_range);
}

// Several threads at a time, each with another chunk.
Status BatchReader::Take(const Packing& packing, const PlanChunk& chunk, ByteSpan raw,
                         bool is_in_place) {
  const std::vector<ChunkToRead>& to_read = packing.to_read;
  const auto number = static_cast<std::size_t>(&chunk - plan_.chunks.data());
  const auto found = std::lower_bound(
      to_read.begin(), to_read.end(), number,
      [](const ChunkToRead& one, std::size_t chunk_number) { return one.chunk < chunk_number; });
  const auto i = static_cast<std::size_t>(found - to_read.begin());
  packing.Pack(i, raw);
  const bool goes_on = i == packing.batch.end.chunk;  // in the next batch
  if (goes_on) kept_.assign(raw.begin(), raw.end());
  if (!holds_own_) return is_in_place ? Status() : CopyOut(plan_, chunk, raw);
  const std::size_t begin = packing.batch.begin.chunk + (packing.batch.begin.requester > 0 ? 1 : 0);
  packing.data.own[i - begin] = {number, Bytes(raw.begin(), raw.end())};
  return {};
}

}  // namespace sealpoint::internal
