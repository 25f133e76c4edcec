// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/box_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::layout {
namespace {

// Offsets are computed modulo 2^64 in unsigned arithmetic, because intermediate results may wrap:
// the stride of a dimension of extent 1 may be any number. Every offset that is used for an access
// is within the caller's memory. In signed arithmetic this would be undefined behaviour.
std::uint64_t Bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t Signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

// True if a step in the outer dimension continues the inner one.
bool Continues(std::int64_t outer_stride, std::int64_t inner_stride, std::uint64_t inner_extent) {
  std::int64_t row = 0;
  if (__builtin_mul_overflow(inner_stride, inner_extent, &row)) return false;
  return outer_stride == row;
}

// A constant size makes each copy one load and one store.
template <std::size_t kSize>
void CopyElementsOf(const CopyRow& row, const std::byte* source, std::byte* target) {
  for (std::uint64_t i = 0; i < row.count; ++i) {
    std::memcpy(target + Signed(i * Bits(row.target_stride_bytes)),
                source + Signed(i * Bits(row.source_stride_bytes)), kSize);
  }
}

void CopyElements(const CopyRow& row, std::uint64_t size, const std::byte* source,
                  std::byte* target) {
  switch (size) {
    case 1:
      return CopyElementsOf<1>(row, source, target);
    case 2:
      return CopyElementsOf<2>(row, source, target);
    case 4:
      return CopyElementsOf<4>(row, source, target);
    case 8:
      return CopyElementsOf<8>(row, source, target);
    case 16:
      return CopyElementsOf<16>(row, source, target);
    default:
      break;
  }
  for (std::uint64_t i = 0; i < row.count; ++i) {
    std::memcpy(target + Signed(i * Bits(row.target_stride_bytes)),
                source + Signed(i * Bits(row.source_stride_bytes)), size);
  }
}

// Sum of (at - origin) * stride.
std::int64_t Displacement(const std::vector<std::uint64_t>& at,
                          const std::vector<std::uint64_t>& origin,
                          const std::vector<std::int64_t>& strides) {
  std::uint64_t sum = 0;
  for (std::size_t d = 0; d < at.size(); ++d) sum += (at[d] - origin[d]) * Bits(strides[d]);
  return Signed(sum);
}

StridedCopy Unmerged(const Region& linear, const Box& part, const Box& origin_box,
                     const std::vector<std::int64_t>& strides_bytes, std::uint64_t element_size) {
  StridedCopy copy;
  copy.extent = part.extent;
  copy.element_size = element_size;
  copy.source_stride_bytes = DenseStridesBytes(linear.box.extent, element_size);
  copy.target_stride_bytes = strides_bytes;
  const std::int64_t in_box =
      Displacement(part.offset, linear.box.offset, copy.source_stride_bytes);
  copy.source_offset_bytes = Signed(Bits(in_box) - linear.run.begin * element_size);
  copy.target_offset_bytes = Displacement(part.offset, origin_box.offset, strides_bytes);
  return copy;
}

}  // namespace

void StridedCopy::MergeDimensions() {
  std::size_t kept = 0;
  for (std::size_t d = 0; d < extent.size(); ++d) {
    if (extent[d] == 1) continue;
    if (kept > 0 && Continues(source_stride_bytes[kept - 1], source_stride_bytes[d], extent[d]) &&
        Continues(target_stride_bytes[kept - 1], target_stride_bytes[d], extent[d])) {
      --kept;
      extent[kept] *= extent[d];
    } else {
      extent[kept] = extent[d];
    }
    source_stride_bytes[kept] = source_stride_bytes[d];
    target_stride_bytes[kept] = target_stride_bytes[d];
    ++kept;
  }
  extent.resize(kept);
  source_stride_bytes.resize(kept);
  target_stride_bytes.resize(kept);
}

void StridedCopy::Normalize() {
  MergeDimensions();
  // A dense innermost dimension becomes part of the element.
  std::size_t kept = extent.size();
  if (kept > 0 && Bits(source_stride_bytes[kept - 1]) == element_size &&
      Bits(target_stride_bytes[kept - 1]) == element_size) {
    --kept;
    element_size *= extent[kept];
  }
  extent.resize(kept);
  source_stride_bytes.resize(kept);
  target_stride_bytes.resize(kept);
  if (kept > 0) return;
  // A plan keeps many of these.
  extent.shrink_to_fit();
  source_stride_bytes.shrink_to_fit();
  target_stride_bytes.shrink_to_fit();
}

std::uint64_t StridedCopy::byte_count() const {
  std::uint64_t count = element_size;
  for (const std::uint64_t length : extent) count *= length;
  return count;
}

CopyRow RowOf(const StridedCopy& copy) {
  if (copy.extent.empty()) return {};
  return {.count = copy.extent.back(),
          .source_stride_bytes = copy.source_stride_bytes.back(),
          .target_stride_bytes = copy.target_stride_bytes.back()};
}

void RunStridedCopy(const StridedCopy& copy, const std::byte* source, std::byte* target) {
  if (copy.byte_count() == 0) return;
  if (copy.extent.empty()) {
    std::memcpy(target + copy.target_offset_bytes, source + copy.source_offset_bytes,
                copy.element_size);
    return;
  }
  const CopyRow row = RowOf(copy);
  VisitRows(copy, [&](std::int64_t source_at, std::int64_t target_at) {
    CopyElements(row, copy.element_size, source + source_at, target + target_at);
    return true;
  });
}

StridedCopy CopyFromPacked(StridedCopy copy) {
  copy.source_offset_bytes = 0;
  copy.source_stride_bytes = DenseStridesBytes(copy.extent, copy.element_size);
  copy.Normalize();
  return copy;
}

std::vector<std::int64_t> DenseStridesBytes(const std::vector<std::uint64_t>& extent,
                                            std::uint64_t element_size) {
  std::vector<std::int64_t> strides;
  strides.reserve(extent.size());
  for (const std::uint64_t stride : RowMajorStrides(extent)) {
    strides.push_back(Signed(stride * element_size));
  }
  return strides;
}

StridedCopy CopyFromLinear(const Region& linear, const Box& part, const Box& origin_box,
                           const std::vector<std::int64_t>& strides_bytes,
                           std::uint64_t element_size) {
  StridedCopy copy = Unmerged(linear, part, origin_box, strides_bytes, element_size);
  copy.Normalize();
  return copy;
}

StridedCopy ConversionFromLinear(const Region& linear, const Box& part, const Box& origin_box,
                                 const std::vector<std::int64_t>& strides_bytes,
                                 std::uint64_t element_size) {
  StridedCopy copy = Unmerged(linear, part, origin_box, strides_bytes, element_size);
  copy.MergeDimensions();
  return copy;
}

StridedCopy SteppedFromLinear(const Region& linear, const Box& part, const Box& origin_box,
                              const std::vector<std::int64_t>& strides_bytes,
                              const std::vector<std::uint64_t>& steps, std::uint64_t element_size) {
  StridedCopy copy = Unmerged(linear, part, origin_box, strides_bytes, element_size);
  std::vector<std::uint64_t> position(steps.size());
  for (std::size_t d = 0; d < steps.size(); ++d) {
    copy.extent[d] = DivideRoundUp(part.extent[d], steps[d]);
    copy.source_stride_bytes[d] = Signed(Bits(copy.source_stride_bytes[d]) * steps[d]);
    position[d] = (part.offset[d] - origin_box.offset[d]) / steps[d];
  }
  copy.target_offset_bytes =
      Displacement(position, std::vector<std::uint64_t>(steps.size()), strides_bytes);
  return copy;
}

StridedCopy CopyToLinear(const Region& linear, const Box& part, const Box& origin_box,
                         const std::vector<std::int64_t>& strides_bytes,
                         std::uint64_t element_size) {
  StridedCopy copy = CopyFromLinear(linear, part, origin_box, strides_bytes, element_size);
  std::swap(copy.source_stride_bytes, copy.target_stride_bytes);
  std::swap(copy.source_offset_bytes, copy.target_offset_bytes);
  return copy;
}

}  // namespace sealpoint::internal::layout
