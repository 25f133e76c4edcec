// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/box_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "lib/layout/region_algebra.h"

namespace sealpoint::internal {
namespace {

// Offsets are computed modulo 2^64: every result that is used lies within the caller's memory,
// while the stride of a dimension of extent 1 may be any number and is never used.
std::uint64_t Bits(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t Signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

// Whether a step in the outer dimension continues the inner one.
bool Continues(std::int64_t outer_stride, std::int64_t inner_stride, std::uint64_t inner_extent) {
  std::int64_t row = 0;
  if (__builtin_mul_overflow(inner_stride, inner_extent, &row)) return false;
  return outer_stride == row;
}

struct Row {
  std::uint64_t count;
  std::int64_t source_stride;
  std::int64_t target_stride;
};

// A constant size makes each copy one load and one store.
template <std::size_t kSize>
void CopyRowOf(const Row& row, const std::byte* source, std::byte* target) {
  for (std::uint64_t i = 0; i < row.count; ++i) {
    std::memcpy(target + Signed(i * Bits(row.target_stride)),
                source + Signed(i * Bits(row.source_stride)), kSize);
  }
}

void CopyRow(const Row& row, std::uint64_t size, const std::byte* source, std::byte* target) {
  switch (size) {
    case 1:
      return CopyRowOf<1>(row, source, target);
    case 2:
      return CopyRowOf<2>(row, source, target);
    case 4:
      return CopyRowOf<4>(row, source, target);
    case 8:
      return CopyRowOf<8>(row, source, target);
    case 16:
      return CopyRowOf<16>(row, source, target);
    default:
      break;
  }
  for (std::uint64_t i = 0; i < row.count; ++i) {
    std::memcpy(target + Signed(i * Bits(row.target_stride)),
                source + Signed(i * Bits(row.source_stride)), size);
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

}  // namespace

void StridedCopy::Normalize() {
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
  // A dense innermost dimension becomes the element.
  if (kept > 0 && Bits(source_stride_bytes[kept - 1]) == element_size &&
      Bits(target_stride_bytes[kept - 1]) == element_size) {
    --kept;
    element_size *= extent[kept];
  }
  extent.resize(kept);
  source_stride_bytes.resize(kept);
  target_stride_bytes.resize(kept);
}

std::uint64_t StridedCopy::byte_count() const {
  std::uint64_t count = element_size;
  for (const std::uint64_t length : extent) count *= length;
  return count;
}

void RunStridedCopy(const StridedCopy& copy, const std::byte* source, std::byte* target) {
  if (copy.byte_count() == 0) return;
  // Offsets, not pointers: between two rows they may leave the memory for a moment.
  std::uint64_t source_at = Bits(copy.source_offset_bytes);
  std::uint64_t target_at = Bits(copy.target_offset_bytes);
  if (copy.extent.empty()) {
    std::memcpy(target + Signed(target_at), source + Signed(source_at), copy.element_size);
    return;
  }
  const std::size_t outer = copy.extent.size() - 1;
  const Row row{.count = copy.extent[outer],
                .source_stride = copy.source_stride_bytes[outer],
                .target_stride = copy.target_stride_bytes[outer]};
  // An odometer over the outer dimensions; the innermost one is the row.
  std::vector<std::uint64_t> index(outer, 0);
  for (;;) {
    CopyRow(row, copy.element_size, source + Signed(source_at), target + Signed(target_at));
    std::size_t d = outer;
    for (; d > 0; --d) {
      source_at += Bits(copy.source_stride_bytes[d - 1]);
      target_at += Bits(copy.target_stride_bytes[d - 1]);
      if (++index[d - 1] < copy.extent[d - 1]) break;
      source_at -= copy.extent[d - 1] * Bits(copy.source_stride_bytes[d - 1]);
      target_at -= copy.extent[d - 1] * Bits(copy.target_stride_bytes[d - 1]);
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
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
  StridedCopy copy;
  copy.extent = part.extent;
  copy.element_size = element_size;
  copy.source_stride_bytes = DenseStridesBytes(linear.box.extent, element_size);
  copy.target_stride_bytes = strides_bytes;
  const std::int64_t in_box =
      Displacement(part.offset, linear.box.offset, copy.source_stride_bytes);
  copy.source_offset_bytes = Signed(Bits(in_box) - linear.run.begin * element_size);
  copy.target_offset_bytes = Displacement(part.offset, origin_box.offset, strides_bytes);
  copy.Normalize();
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

}  // namespace sealpoint::internal
