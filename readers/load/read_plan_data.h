// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_
#define SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/convert/element_converter.h"
#include "lib/layout/box_copy.h"
#include "sealpoint/codec.h"
#include "sealpoint/id.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// From the raw bytes of a chunk into the memory at `target`.
struct PlanCopy {
  static constexpr std::size_t kAsStored = ~std::size_t{0};

  StridedCopy copy;
  std::byte* target = nullptr;
  int device = kHostDevice;                // of the target
  std::size_t converted_part = kAsStored;  // in ReadPlanData::converted_parts
  bool is_converted() const { return converted_part != kAsStored; }
  std::byte* first_byte() const { return target + copy.target_offset_bytes; }
};

// An item that is converted to another dtype.
struct PlanConversion {
  ElementConverter converter;
  Region region;
};

// The elements of a copy that converts them, in tensor coordinates.
struct ConvertedPart {
  std::size_t conversion = 0;  // in ReadPlanData::conversions
  Box box;
};

struct PlanChunk {
  std::uint64_t offset = 0;  // in the blob
  std::uint32_t stored_size = 0;
  std::uint32_t raw_size = 0;
  Codec codec = Codec::kNone;
  std::uint16_t element_size = 1;  // at most 256
  std::uint32_t name = 0;          // of the tensor or object, in ReadPlanData::names
  std::uint64_t first_copy = 0;    // in ReadPlanData::copies
  std::uint64_t copy_count = 0;
  Digest raw_digest;
  Digest stored_digest;
};

// Whether the copy puts the chunk's raw bytes, as they are stored, into contiguous device memory.
inline bool IsWholeOnDevice(const PlanChunk& chunk, const PlanCopy& copy) {
  return copy.device != kHostDevice && !copy.is_converted() &&
         copy.copy.element_size == chunk.raw_size;
}

// Chunks that lie back to back in a blob and are fetched by one read.
struct PlanRange {
  std::uint32_t blob = 0;  // in the index
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::size_t first_chunk = 0;
  std::size_t chunk_count = 0;
  // Where the whole range may be read to, because its bytes are those of the destination; else
  // null.
  std::byte* in_place = nullptr;
};

// A stream; copies to memory of its device run after what is on it.
struct PlanStream {
  int device = 0;
  void* stream = nullptr;
  std::uint32_t name = 0;  // of a tensor with such a destination, in ReadPlanData::names
};

// Ranges ascend by blob and offset; so do their chunks.
struct ReadPlanData {
  AttemptId attempt;
  std::vector<std::string> names;
  bool is_of_object = false;            // the names are those of objects, not of tensors
  std::vector<std::string> blob_names;  // of all blobs that are read, ascending
  std::vector<PlanRange> ranges;
  std::vector<PlanChunk> chunks;
  std::vector<PlanCopy> copies;
  std::vector<PlanConversion> conversions;
  std::vector<ConvertedPart> converted_parts;
  std::vector<PlanStream> streams;  // of all destinations in device memory, each once
  std::vector<LoadFinding> findings;
  PlanSummary summary;
  // A tensor whose destination is none, in `names`: such a plan cannot be read.
  std::optional<std::uint32_t> plan_only_name{};
  // Memory that one thread needs at most: a range widened to whole pages and lent by the staging
  // pool, and a decoded chunk.
  std::uint64_t range_memory_max = 0;
  std::uint64_t range_pages_max = 0;  // as it is widened
  std::uint64_t decoded_size_max = 0;

  // The error, which then names the tensor or object with this number in `names`.
  Status AtItem(std::uint32_t name, Status error) const {
    return is_of_object ? std::move(error).AtObject(names[name])
                        : std::move(error).AtTensor(names[name]);
  }
  std::span<const PlanCopy> CopiesOf(const PlanChunk& chunk) const {
    return std::span(copies).subspan(chunk.first_copy, chunk.copy_count);
  }
};

// InvalidArgument if the plan has a destination without memory (MutableMemoryView::PlanOnly).
Status CheckHasMemory(const ReadPlanData& plan);

}  // namespace sealpoint::internal

namespace sealpoint {
struct ReadPlan::Data final : internal::ReadPlanData {};
}  // namespace sealpoint

#endif  // SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_
