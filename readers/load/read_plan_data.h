// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_
#define SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/convert/element_converter.h"
#include "lib/layout/box_copy.h"
#include "sealpoint/bytes.h"
#include "sealpoint/codec.h"
#include "sealpoint/id.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// From the raw bytes of a chunk into the memory at `target`. Most are one contiguous range, and a
// plan may have millions: strides are kept only if there are any.
class PlanCopy {
 public:
  static constexpr std::uint32_t kAsStored = ~std::uint32_t{0};

  PlanCopy() = default;
  // Precondition: normalized.
  PlanCopy(StridedCopy copy, std::byte* target, int device)
      : element_size_(copy.element_size),
        source_offset_bytes_(copy.source_offset_bytes),
        target_offset_bytes_(copy.target_offset_bytes),
        target_(target),
        device_(device) {
    if (!copy.is_contiguous()) strided_ = std::make_shared<const StridedCopy>(std::move(copy));
  }

  // An element of a contiguous copy is all of it.
  std::uint64_t element_size() const { return element_size_; }
  bool is_contiguous() const { return strided_ == nullptr; }
  // use(const StridedCopy&) with the copy as it is run. No strides are copied for it.
  template <typename Use>
  auto With(const Use& use) const {
    if (strided_ != nullptr) return use(*strided_);
    StridedCopy contiguous;
    contiguous.element_size = element_size_;
    contiguous.source_offset_bytes = source_offset_bytes_;
    contiguous.target_offset_bytes = target_offset_bytes_;
    return use(contiguous);
  }
  std::uint64_t byte_count() const {
    return With([](const StridedCopy& copy) { return copy.byte_count(); });
  }
  std::byte* target() const { return target_; }
  int device() const { return device_; }  // of the target
  std::byte* first_byte() const { return target_ + target_offset_bytes_; }

  // Takes the next copy in if it begins where this one ends, on both sides; both of one
  // destination. One that is not contiguous takes more of the source than one element.
  bool Extend(const PlanCopy& next) {
    const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const bool continues =
        is_contiguous() && next.is_contiguous() &&
        bits(source_offset_bytes_) + element_size_ == bits(next.source_offset_bytes_) &&
        bits(target_offset_bytes_) + element_size_ == bits(next.target_offset_bytes_);
    if (continues) element_size_ += next.element_size_;
    return continues;
  }

  // Number in ReadPlanData::converted_parts.
  std::uint32_t converted_part = kAsStored;
  bool is_converted() const { return converted_part != kAsStored; }

 private:
  std::shared_ptr<const StridedCopy> strided_;  // null: contiguous
  std::uint64_t element_size_ = 0;
  std::int64_t source_offset_bytes_ = 0;
  std::int64_t target_offset_bytes_ = 0;
  std::byte* target_ = nullptr;
  int device_ = kHostDevice;
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
  std::uint32_t blob = 0;    // in the index
  std::uint32_t record = 0;  // number in the blob, by which a chunk is known
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
  // If the copy has strides, its elements are smaller than the chunk.
  return copy.device() != kHostDevice && !copy.is_converted() &&
         copy.element_size() == chunk.raw_size;
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
  std::vector<std::string_view> names;  // as the index has them
  std::shared_ptr<const Bytes> names_owner;
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
  // InvalidArgument if a destination has no memory (MutableMemoryView::PlanOnly).
  Status CheckHasMemory() const {
    if (!plan_only_name) return {};
    return AtItem(*plan_only_name,
                  InvalidArgument("the destination has no memory: it is for planning only"));
  }
  std::span<const PlanCopy> CopiesOf(const PlanChunk& chunk) const {
    return std::span(copies).subspan(chunk.first_copy, chunk.copy_count);
  }
};

}  // namespace sealpoint::internal

namespace sealpoint {
struct ReadPlan::Data final : internal::ReadPlanData {};
}  // namespace sealpoint

#endif  // SEALPOINT_READERS_LOAD_READ_PLAN_DATA_H_
