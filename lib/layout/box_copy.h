// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_BOX_COPY_H_
#define SEALPOINT_LIB_LAYOUT_BOX_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/region.h"

namespace sealpoint::internal {

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

  // Drops dimensions of extent 1, merges adjacent dimensions that continue each other on both
  // sides, and makes a dense innermost dimension part of the element, so that a row is one memcpy.
  // The copied bytes and where they go stay the same; element_size may grow.
  void Normalize();
  // True where a normalized copy is one contiguous piece on both sides.
  bool is_contiguous() const { return extent.empty(); }
  std::uint64_t byte_count() const;
};

// Runs it, in row-major order; any copy, normalized or not, also one of no bytes. Preconditions:
// every touched byte lies in memory the caller owns; the sides don't overlap.
void RunStridedCopy(const StridedCopy& copy, const std::byte* source, std::byte* target);

// Byte strides of densely packed row-major extents.
std::vector<std::int64_t> DenseStridesBytes(const std::vector<std::uint64_t>& extent,
                                            std::uint64_t element_size);

// The copy of the elements of `part` (a box inside both) between a dense linear buffer that holds
// region `linear` from its run's begin on, and strided memory whose byte 0 is element
// `origin_box.offset` with `strides_bytes` per dimension of the tensor. Precondition: `part` is one
// box of IntersectRegions/DecomposeRun of `linear`, i.e. all its elements lie in the region.
StridedCopy CopyFromLinear(const Region& linear, const Box& part, const Box& origin_box,
                           const std::vector<std::int64_t>& strides_bytes,
                           std::uint64_t element_size);
// The way back: from that strided memory into the linear buffer.
StridedCopy CopyToLinear(const Region& linear, const Box& part, const Box& origin_box,
                         const std::vector<std::int64_t>& strides_bytes,
                         std::uint64_t element_size);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_LAYOUT_BOX_COPY_H_
