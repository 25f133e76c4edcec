// SPDX-License-Identifier: Apache-2.0
#include "readers/load/plan_builder.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/layout/region_algebra.h"
#include "lib/transfer/delivery_plan.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::load {

// What the index says of the shard whose chunks are added.
struct PlanBuilder::StoredShard {
  metadata::ShardRef ref;
  format::ShardShape shape;
  std::uint32_t element_size = 1;
  std::uint32_t name = 0;
  const metadata::TensorView* tensor = nullptr;  // null: an object
};

namespace {

constexpr std::uint64_t kInPlaceMinBytes = kMiB;
constexpr std::uint64_t kSeriesMax = std::uint64_t{1} << 14;  // chunks; 1 MiB of records

// The destination of a chunk whose raw bytes are requested as they are stored and whole; else null.
std::byte* PlainTarget(const ReadPlanData& data, const transfer::PlanChunk& chunk) {
  if (chunk.codec != Codec::kNone || chunk.copy_count != 1) return nullptr;
  const transfer::PlanCopy& copy = data.copies[chunk.first_copy];
  const bool is_whole =
      copy.way() == transfer::CopyWay::kCopy && copy.element_size() == chunk.raw_size;
  return is_whole ? copy.first_byte() : nullptr;
}

// Bytes that a chunk counts for in its range: an unchanged one stores none, and is read of the
// base.
std::uint64_t WorkOf(const transfer::PlanChunk& chunk) {
  return chunk.codec == Codec::kChanges ? chunk.raw_size : chunk.stored_size;
}

// From the bytes of a chunk to the destination.
layout::StridedCopy CopyOf(const Region& chunk, const Box& part, const Destination& destination,
                           std::uint32_t element_size) {
  const Box& origin = destination.region().box;
  if (destination.steps().empty()) {
    const auto make_copy =
        destination.converter ? layout::ConversionFromLinear : layout::CopyFromLinear;
    return make_copy(chunk, part, origin, destination.strides_bytes(), element_size);
  }
  layout::StridedCopy copy = layout::SteppedFromLinear(
      chunk, part, origin, destination.strides_bytes(), destination.steps(), element_size);
  if (destination.converter) {
    copy.MergeDimensions();
  } else {
    copy.Normalize();
  }
  return copy;
}

// The shards that may have something of `requested`, ascending.
std::vector<std::pair<std::size_t, Region>> ShardsOf(const metadata::TensorView& tensor,
                                                     const Region& requested) {
  std::vector<std::pair<std::size_t, Region>> shards;
  if (tensor.IsOneShard(requested)) {
    shards.emplace_back(0, requested);
    return shards;
  }
  // The boxes of a run are narrower than its box, which matters for a run of few rows.
  for (const Box& box : layout::DecomposeRun(requested)) {
    for (auto& shard : tensor.ShardsTouching(box)) shards.push_back(std::move(shard));
  }
  std::sort(shards.begin(), shards.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  shards.erase(std::unique(shards.begin(), shards.end(),
                           [](const auto& a, const auto& b) { return a.first == b.first; }),
               shards.end());
  return shards;
}

}  // namespace

PlanBuilder::PlanBuilder(const metadata::Metadata& index, container::BlobTables& tables,
                         std::uint64_t range_size_max)
    : index_(index), tables_(tables), range_size_max_(range_size_max) {
  data_.names_owner = index.owner();
}

void PlanBuilder::Reserve(std::size_t item_count) {
  data_.names.reserve(item_count);
  data_.chunks.reserve(item_count);
  data_.copies.reserve(item_count);
}

Status PlanBuilder::AddTensor(const metadata::TensorView& tensor, const Destination& destination) {
  ++data_.summary.items;
  std::optional<Region> spanned;
  if (!destination.steps().empty()) spanned = destination.Spanned();
  const Region& requested = spanned ? *spanned : destination.region();
  data_.summary.bytes_requested += destination.region().element_count() * tensor.element_size();
  const auto shards = ShardsOf(tensor, requested);
  data_.names.emplace_back(tensor.name());
  AddStream(destination);
  if (destination.is_plan_only) {
    data_.plan_only_name = static_cast<std::uint32_t>(data_.names.size() - 1);
  }
  if (destination.converter) {
    data_.conversions.push_back(
        {.converter = *destination.converter, .region = requested, .steps = destination.steps()});
  }
  StoredShard stored{.ref = {},
                     .shape = {.raw_size = 0, .chunk_size = tensor.chunk_size()},
                     .element_size = tensor.element_size(),
                     .name = static_cast<std::uint32_t>(data_.names.size() - 1),
                     .tensor = &tensor};
  for (const auto& [number, region] : shards) {
    stored.ref = tensor.shard_ref(number);
    stored.shape.raw_size = region.element_count() * stored.element_size;
    auto selected = SelectChunks(region, stored.shape.chunk_size / stored.element_size, requested,
                                 destination.steps());
    SEALPOINT_RETURN_IF_ERROR(AddShard(stored, std::move(selected), &destination));
  }
  return {};
}

void PlanBuilder::AddStream(const Destination& destination) {
  if (destination.device == kHostDevice) return;
  const auto is_same = [&](const transfer::PlanStream& known) {
    return known.device == destination.device && known.stream == destination.stream;
  };
  if (std::any_of(data_.streams.begin(), data_.streams.end(), is_same)) return;
  data_.streams.push_back({.device = destination.device,
                           .stream = destination.stream,
                           .name = static_cast<std::uint32_t>(data_.names.size() - 1)});
}

Status PlanBuilder::AddObject(const metadata::ObjectView& object) {
  ++data_.summary.items;
  data_.summary.bytes_requested += object.size();
  if (object.size() == 0) return {};
  data_.is_of_object = true;
  data_.names.emplace_back(object.name());
  const StoredShard stored{.ref = object.shard_ref(),
                           .shape = {.raw_size = object.size(), .chunk_size = object.chunk_size()},
                           .element_size = 1,
                           .name = static_cast<std::uint32_t>(data_.names.size() - 1)};
  // Part by part: the index may claim more chunks than there are good records.
  const std::uint64_t count = metadata::ChunkCount(object.size(), object.chunk_size());
  for (std::uint64_t first = 0; first < count; first += kSeriesMax) {
    std::vector<SelectedChunk> some(std::min(kSeriesMax, count - first));
    for (std::size_t i = 0; i < some.size(); ++i) some[i].chunk = first + i;
    SEALPOINT_RETURN_IF_ERROR(AddShard(stored, std::move(some), nullptr));
  }
  return {};
}

// Whether the chunk before this one was the last that was added.
bool PlanBuilder::ContinuesLast(const StoredShard& stored, std::uint64_t chunk) const {
  return chunk > 0 && last_ == std::pair(stored.ref.blob, stored.ref.first_record + chunk - 1);
}

// Loads the records of each unbroken series of chunks at once, a long one in parts. A part begins
// with the last record of the part before it, so that what neighbours must keep is checked there
// too.
Status PlanBuilder::AddShard(const StoredShard& stored, std::vector<SelectedChunk> selected,
                             const Destination* destination) {
  for (std::size_t begin = 0; begin < selected.size();) {
    std::size_t end = begin + 1;
    while (end < selected.size() && end - begin < kSeriesMax &&
           selected[end].chunk == selected[end - 1].chunk + 1) {
      ++end;
    }
    const std::size_t again = ContinuesLast(stored, selected[begin].chunk) ? 1 : 0;
    // R-IDX-20 bounds the records of a shard by 32 bits.
    Result<std::vector<format::ChunkRecord>> records =
        tables_.Load({.shard = stored.ref,
                      .shape = stored.shape,
                      .first_chunk = static_cast<std::uint32_t>(selected[begin].chunk - again),
                      .count = static_cast<std::uint32_t>(end - begin + again),
                      .is_object = stored.tensor == nullptr},
                     data_.summary.table_bytes_read);
    if (!records) return data_.AtItem(stored.name, std::move(records).error());
    for (std::size_t i = begin; i < end; ++i) {
      AddChunk(stored, (*records)[i - begin + again], selected[i], destination);
    }
    begin = end;
  }
  return {};
}

void PlanBuilder::AddCopies(const StoredShard& stored, const SelectedChunk& selected,
                            const Destination& destination) {
  const std::size_t first_copy = data_.copies.size();
  for (const Box& part : selected.parts) {
    layout::StridedCopy strided = CopyOf(selected.region, part, destination, stored.element_size);
    strided.target_offset_bytes =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(strided.target_offset_bytes) +
                                  static_cast<std::uint64_t>(destination.shift_bytes));
    std::uint32_t converted_part = transfer::PlanCopy::kAsStored;
    if (destination.converter) {
      converted_part = static_cast<std::uint32_t>(data_.converted_parts.size());
      data_.converted_parts.push_back({.conversion = data_.conversions.size() - 1, .box = part});
    }
    transfer::PlanCopy copy(std::move(strided), destination.data, destination.device,
                            converted_part);
    const bool is_joined = !copy.is_converted() && data_.copies.size() > first_copy &&
                           data_.copies.back().Extend(copy);
    if (!is_joined) data_.copies.push_back(std::move(copy));
  }
}

void PlanBuilder::AddChunk(const StoredShard& stored, const format::ChunkRecord& record,
                           const SelectedChunk& selected, const Destination* destination) {
  const std::size_t first_copy = data_.copies.size();
  if (destination != nullptr) AddCopies(stored, selected, *destination);
  last_ = std::pair(stored.ref.blob, std::uint64_t{stored.ref.first_record} + record.chunk);
  const auto changed = static_cast<std::uint32_t>(data_.changed.size());
  if (record.codec == Codec::kChanges) data_.changed.push_back({*stored.tensor, selected.region});
  data_.chunks.push_back({.blob = stored.ref.blob,
                          .record = stored.ref.first_record + record.chunk,
                          .offset = record.offset,
                          .stored_size = record.stored_size,
                          .raw_size = record.raw_size,
                          .codec = record.codec,
                          .element_size = static_cast<std::uint16_t>(stored.element_size),
                          .name = stored.name,
                          .first_copy = first_copy,
                          .copy_count = data_.copies.size() - first_copy,
                          .changed = changed,
                          .raw_digest = record.raw_digest,
                          .stored_digest = record.stored_digest});
}

ReadPlanData PlanBuilder::Finish() {
  MergeChunks();
  CutRanges();
  Summarize();
  return std::move(data_);
}

// By their places in the files; equal chunks in the order in which they were requested. A chunk
// that several items want is read once: then its copies are brought together, too.
void PlanBuilder::MergeChunks() {
  std::vector<transfer::PlanChunk>& chunks = data_.chunks;
  const auto place = [](const transfer::PlanChunk& chunk) {
    return std::tuple(chunk.blob, chunk.offset, chunk.record);
  };
  std::sort(chunks.begin(), chunks.end(),
            [&](const transfer::PlanChunk& a, const transfer::PlanChunk& b) {
              return std::tuple(place(a), a.first_copy) < std::tuple(place(b), b.first_copy);
            });
  const auto are_same = [&](const transfer::PlanChunk& a, const transfer::PlanChunk& b) {
    return place(a) == place(b);
  };
  if (std::adjacent_find(chunks.begin(), chunks.end(), are_same) == chunks.end()) return;
  std::vector<transfer::PlanCopy> copies;
  copies.reserve(data_.copies.size());
  std::size_t kept = 0;
  for (const transfer::PlanChunk& chunk : chunks) {
    const auto from = data_.copies.begin() + static_cast<std::ptrdiff_t>(chunk.first_copy);
    const std::size_t first_copy = copies.size();
    std::move(from, from + static_cast<std::ptrdiff_t>(chunk.copy_count),
              std::back_inserter(copies));
    if (kept > 0 && are_same(chunks[kept - 1], chunk)) {
      chunks[kept - 1].copy_count += chunk.copy_count;
    } else {
      chunks[kept] = chunk;
      chunks[kept++].first_copy = first_copy;
    }
  }
  chunks.resize(kept);
  data_.copies = std::move(copies);
}

void PlanBuilder::CutRanges() {
  std::uint64_t work = 0;  // of the last range
  for (std::size_t i = 0; i < data_.chunks.size(); ++i) {
    const transfer::PlanChunk& chunk = data_.chunks[i];
    std::byte* const target = PlainTarget(data_, chunk);
    transfer::PlanRange* const range = data_.ranges.empty() ? nullptr : &data_.ranges.back();
    const bool is_adjacent = range != nullptr && range->blob == chunk.blob &&
                             range->offset + range->size == chunk.offset &&
                             work + WorkOf(chunk) <= range_size_max_;
    const bool stays_in_place = is_adjacent && target != nullptr && range->in_place != nullptr &&
                                range->in_place + range->size == target;
    // Reading in place saves a pass over the bytes; worth a read of its own for a longer range, be
    // it the one that ends here or one that begins with this chunk.
    const bool was_in_place =
        is_adjacent && range->in_place != nullptr && range->size >= kInPlaceMinBytes;
    const bool begins_in_place = target != nullptr && chunk.stored_size >= kInPlaceMinBytes;
    const bool is_cut = is_adjacent && !stays_in_place && (was_in_place || begins_in_place);
    if (is_adjacent && !is_cut) {
      if (!stays_in_place) range->in_place = nullptr;
      range->size += chunk.stored_size;
      work += WorkOf(chunk);
      ++range->chunk_count;
      continue;
    }
    work = WorkOf(chunk);
    data_.ranges.push_back({.blob = chunk.blob,
                            .offset = chunk.offset,
                            .size = chunk.stored_size,
                            .first_chunk = i,
                            .chunk_count = 1,
                            .in_place = target});
  }
}

void PlanBuilder::Summarize() {
  PlanSummary& summary = data_.summary;
  summary.chunks = data_.chunks.size();
  summary.requests = data_.ranges.size();
  for (const transfer::PlanRange& range : data_.ranges) {
    summary.bytes_read += range.size;
    const std::uint64_t begin = range.offset - range.offset % kDirectIoAlignmentBytes;
    const std::uint64_t end = AlignUp(range.offset + range.size, kDirectIoAlignmentBytes);
    data_.range_pages_max = std::max(data_.range_pages_max, end - begin);
    // The staging pool lends powers of two.
    data_.range_memory_max = std::max(data_.range_memory_max, std::bit_ceil(end - begin));
    const std::string name = format::BlobName(index_.blob(range.blob).id);
    // Blobs of an index ascend by id, and so do their names.
    if (data_.blob_names.empty() || data_.blob_names.back() != name) {
      data_.blob_names.push_back(name);
    }
  }
  const std::optional<BaseRef> base = index_.base();
  for (const transfer::PlanChunk& chunk : data_.chunks) {
    if (chunk.codec == Codec::kNone) continue;
    // Changes are made of a chunk of each checkpoint of the chain.
    const std::uint64_t levels = chunk.codec == Codec::kChanges ? base->depth + 1 : 1;
    data_.decoded_size_max = std::max(data_.decoded_size_max, levels * chunk.raw_size);
  }
  summary.files = data_.blob_names.size();
  if (summary.bytes_requested > 0) {
    summary.amplification =
        static_cast<double>(summary.bytes_read) / static_cast<double>(summary.bytes_requested);
  }
}

}  // namespace sealpoint::internal::load
