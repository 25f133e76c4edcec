// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_DELIVERY_PLAN_H_
#define SEALPOINT_LIB_TRANSFER_DELIVERY_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/convert/element_converter.h"
#include "lib/layout/box_copy.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/dtype.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// Method of transferring the elements of a copy to their destination.
enum class CopyWay : std::uint8_t {
  kCopy,      // host memory, one contiguous range on both sides
  kScatter,   // host memory, rows or elements apart
  kConvert,   // host memory, in another dtype
  kToDevice,  // queued; converted before, if they are
};

// From the raw bytes of a chunk into the memory at `target`. Nearly all are one contiguous range,
// and a plan may have millions: strides are kept only if there are any.
class PlanCopy {
 public:
  static constexpr std::uint32_t kAsStored = ~std::uint32_t{0};

  PlanCopy() = default;
  // `converted_part` is a number in DeliveryPlan::converted_parts, or kAsStored. Precondition:
  // normalized.
  PlanCopy(layout::StridedCopy copy, std::byte* target, int device,
           std::uint32_t converted_part = kAsStored)
      : element_size_(copy.element_size),
        source_offset_bytes_(copy.source_offset_bytes),
        target_offset_bytes_(copy.target_offset_bytes),
        target_(target),
        device_(device),
        converted_part_(converted_part) {
    if (!copy.is_contiguous())
      strided_ = std::make_shared<const layout::StridedCopy>(std::move(copy));
  }

  // Never changes: it is chosen when the plan is made.
  CopyWay way() const {
    if (device_ != kHostDevice) return CopyWay::kToDevice;
    if (is_converted()) return CopyWay::kConvert;
    return is_contiguous() ? CopyWay::kCopy : CopyWay::kScatter;
  }

  // An element of a contiguous copy is all of it.
  std::uint64_t element_size() const { return element_size_; }
  bool is_contiguous() const { return strided_ == nullptr; }
  // Calls use(const StridedCopy&) with the copy to execute. No strides are copied for it.
  template <typename Use>
  auto With(const Use& use) const {
    if (strided_ != nullptr) return use(*strided_);
    layout::StridedCopy contiguous;
    contiguous.element_size = element_size_;
    contiguous.source_offset_bytes = source_offset_bytes_;
    contiguous.target_offset_bytes = target_offset_bytes_;
    return use(contiguous);
  }
  std::uint64_t byte_count() const {
    return With([](const layout::StridedCopy& copy) { return copy.byte_count(); });
  }
  std::byte* target() const { return target_; }
  int device() const { return device_; }  // of the target
  std::byte* first_byte() const { return target_ + target_offset_bytes_; }
  // The same for the source, in the raw bytes of the chunk.
  const std::byte* first_source(ByteSpan raw) const { return raw.data() + source_offset_bytes_; }

  // Merges the next copy if both are contiguous and it begins at the end of this one, on both
  // sides, for the same destination.
  bool Extend(const PlanCopy& next) {
    const auto bits = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
    const bool continues =
        is_contiguous() && next.is_contiguous() &&
        bits(source_offset_bytes_) + element_size_ == bits(next.source_offset_bytes_) &&
        bits(target_offset_bytes_) + element_size_ == bits(next.target_offset_bytes_);
    if (continues) element_size_ += next.element_size_;
    return continues;
  }

  bool is_converted() const { return converted_part_ != kAsStored; }
  std::uint32_t converted_part() const { return converted_part_; }

 private:
  std::shared_ptr<const layout::StridedCopy> strided_;  // null: contiguous
  std::uint64_t element_size_ = 0;
  std::int64_t source_offset_bytes_ = 0;
  std::int64_t target_offset_bytes_ = 0;
  std::byte* target_ = nullptr;
  int device_ = kHostDevice;
  std::uint32_t converted_part_ = kAsStored;
};

// An item that is converted to another dtype.
struct PlanConversion {
  convert::ElementConverter converter;
  Region region;
  std::vector<std::uint64_t> steps{};  // of the elements in it; empty: all
};

// The elements of a copy that converts them, in tensor coordinates.
struct ConvertedPart {
  std::size_t conversion = 0;  // in DeliveryPlan::conversions
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
  std::uint32_t name = 0;          // of the tensor or object, in DeliveryPlan::names
  std::uint64_t first_copy = 0;    // in DeliveryPlan::copies
  std::uint64_t copy_count = 0;
  std::uint32_t changed = 0;  // with Codec::kChanges: number in ReadPlanData::changed
  Digest raw_digest;
  Digest stored_digest;
};

// Adjacent chunks of a blob that are read together.
struct PlanRange {
  std::uint32_t blob = 0;  // in the index
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::size_t first_chunk = 0;
  std::size_t chunk_count = 0;
  // Destination of the whole range, if its bytes can be read in place; else null.
  std::byte* in_place = nullptr;
  // Other ranks read it as well, each for itself.
  bool has_other_readers = false;
};

// A stream; copies to memory of its device run after the work that is on it.
struct PlanStream {
  int device = 0;
  void* stream = nullptr;
  std::uint32_t name = 0;  // of a tensor with such a destination, in DeliveryPlan::names
};

// Copies from chunks to memory. Ranges ascend by blob and offset; so do their chunks.
struct DeliveryPlan {
  std::vector<std::string_view> names;  // as the index has them
  std::shared_ptr<const Bytes> names_owner;
  bool is_of_object = false;  // names are of objects instead of tensors
  std::vector<PlanRange> ranges;
  std::vector<PlanChunk> chunks;
  std::vector<PlanCopy> copies;
  std::vector<PlanConversion> conversions;
  std::vector<ConvertedPart> converted_parts;
  std::vector<PlanStream> streams;  // of all destinations in device memory, each once
  // Memory that one thread needs at most: a range widened to whole pages and lent by the staging
  // pool, and a decoded chunk.
  std::uint64_t range_memory_max = 0;
  std::uint64_t range_pages_max = 0;  // as it is widened
  std::uint64_t decoded_size_max = 0;

  // True if the delivering thread makes all copies. Other copies are queued; the copies of one load
  // are queued by one thread at a time.
  bool is_host_only() const { return streams.empty(); }

  // The error, which then names the tensor or object with this number in `names`.
  Status AtItem(std::uint32_t name, Status error) const {
    return is_of_object ? std::move(error).AtObject(names[name])
                        : std::move(error).AtTensor(names[name]);
  }
  std::span<const PlanCopy> CopiesOf(const PlanChunk& chunk) const {
    return std::span(copies).subspan(chunk.first_copy, chunk.copy_count);
  }
  std::span<const PlanChunk> ChunksOf(const PlanRange& range) const {
    return std::span(chunks).subspan(range.first_chunk, range.chunk_count);
  }
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_DELIVERY_PLAN_H_
