// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_BOX_COPY_H_
#define SEALPOINT_LIB_LAYOUT_BOX_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::layout {

// An N-dimensional strided copy of whole elements: extent in elements, strides and offsets in bytes
// (strides may be negative, or zero on the source side of a save). Copies made by the functions
// below are normalized.
struct StridedCopy {
  std::vector<std::uint64_t> extent;
  std::vector<std::int64_t> source_stride_bytes;
  std::vector<std::int64_t> target_stride_bytes;
  std::uint64_t element_size = 1;
  std::int64_t source_offset_bytes = 0;
  std::int64_t target_offset_bytes = 0;

  // Drops dimensions of extent 1 and merges adjacent dimensions that continue each other on both
  // sides. Does not change which elements are copied, their order or their targets.
  void MergeDimensions();
  // As above, and makes a dense innermost dimension part of the element, so that a row is one
  // memcpy. Does not change the copied bytes or their targets; element_size may grow.
  void Normalize();
  // True if a normalized copy is one contiguous range on both sides.
  bool is_contiguous() const { return extent.empty(); }
  std::uint64_t byte_count() const;
};

// The innermost dimension of a copy.
struct CopyRow {
  std::uint64_t count = 1;
  std::int64_t source_stride_bytes = 0;
  std::int64_t target_stride_bytes = 0;
};
CopyRow RowOf(const StridedCopy& copy);

// Calls visit(source offset, target offset) for the beginning of each row, in row-major order,
// until one call returns false. Precondition: no extent is 0.
template <typename Visit>
void VisitRows(const StridedCopy& copy, const Visit& visit);

// Runs a copy in row-major order. It may be normalized or not, and may have no bytes.
// Preconditions: every touched byte is in memory that the caller owns; the two sides do not
// overlap.
void RunStridedCopy(const StridedCopy& copy, const std::byte* source, std::byte* target);

// The same copy with packed source elements. Precondition: it reads them in ascending order, each
// once, as a copy of CopyFromLinear does.
StridedCopy CopyFromPacked(StridedCopy copy);

// Byte strides of densely packed row-major extents.
std::vector<std::int64_t> DenseStridesBytes(const std::vector<std::uint64_t>& extent,
                                            std::uint64_t element_size);

// The copy of the elements of `part` (a box inside both) between a dense linear buffer that holds
// region `linear` from its run's begin on, and strided memory whose byte 0 is element
// `origin_box.offset` with `strides_bytes` per dimension of the tensor. Precondition: `part` is one
// box of IntersectRegions/DecomposeRun of `linear`, i.e. all its elements are in the region.
StridedCopy CopyFromLinear(const Region& linear, const Box& part, const Box& origin_box,
                           const std::vector<std::int64_t>& strides_bytes,
                           std::uint64_t element_size);
// The same for elements that are converted to another size: `element_size` is the size in the
// buffer, the strides are those of the memory. Dimensions are merged, but rows remain rows of
// single elements, because the converter must process each element.
StridedCopy ConversionFromLinear(const Region& linear, const Box& part, const Box& origin_box,
                                 const std::vector<std::int64_t>& strides_bytes,
                                 std::uint64_t element_size);
// As CopyFromLinear, but of every steps[d]-th element of `part` in dimension d, and the memory has
// only the elements at multiples of the steps from origin_box.offset. Not normalized. Precondition:
// `part` begins at such an element.
StridedCopy SteppedFromLinear(const Region& linear, const Box& part, const Box& origin_box,
                              const std::vector<std::int64_t>& strides_bytes,
                              const std::vector<std::uint64_t>& steps, std::uint64_t element_size);
// The reverse of CopyFromLinear: from strided memory into the linear buffer.
StridedCopy CopyToLinear(const Region& linear, const Box& part, const Box& origin_box,
                         const std::vector<std::int64_t>& strides_bytes,
                         std::uint64_t element_size);

// Offsets are computed modulo 2^64, since between two rows they may be outside of the memory.
template <typename Visit>
void VisitRows(const StridedCopy& copy, const Visit& visit) {
  auto source_at = static_cast<std::uint64_t>(copy.source_offset_bytes);
  auto target_at = static_cast<std::uint64_t>(copy.target_offset_bytes);
  // An odometer over the outer dimensions; the innermost one is the row.
  const std::size_t outer = copy.extent.empty() ? 0 : copy.extent.size() - 1;
  std::vector<std::uint64_t> index(outer, 0);
  for (;;) {
    if (!visit(static_cast<std::int64_t>(source_at), static_cast<std::int64_t>(target_at))) return;
    std::size_t d = outer;
    for (; d > 0; --d) {
      const auto source_stride = static_cast<std::uint64_t>(copy.source_stride_bytes[d - 1]);
      const auto target_stride = static_cast<std::uint64_t>(copy.target_stride_bytes[d - 1]);
      source_at += source_stride;
      target_at += target_stride;
      if (++index[d - 1] < copy.extent[d - 1]) break;
      source_at -= copy.extent[d - 1] * source_stride;
      target_at -= copy.extent[d - 1] * target_stride;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_BOX_COPY_H_
