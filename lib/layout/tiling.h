// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_TILING_H_
#define SEALPOINT_LIB_LAYOUT_TILING_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sealpoint/region.h"

namespace sealpoint::internal {

// Exact tiling by signed corner sums. The indicator function of a half-open box is the signed sum
// of the indicators of the 2^ndim orthants at its corners, and orthant indicators are linearly
// independent; so boxes cover every element of a tensor exactly once if and only if the signed
// corners of all boxes cancel against those of the tensor. At the lexicographically first
// corner that does not cancel, the element is covered 1 + (sum) times, which names the hole or
// the overlap. Runs are decomposed into boxes first. Cost O(c log c) for c corners; dimensions
// that every box spans fully are left out of the corners.
struct TilingFault {
  std::vector<std::uint64_t> element;  // coordinates of the first badly covered element
  std::uint64_t times_covered = 0;     // 0: a hole; 2 or more: an overlap
  // Indices into the given regions of up to two regions that hold the element.
  std::vector<std::size_t> holders;
};

// Nothing where `regions` tile the shape exactly. An empty tensor is tiled by no region at all,
// every other needs at least one; empty regions are faults of the caller (CheckRegion first).
// Errors: LimitExceeded where the corners pass `corner_count_max`.
Result<std::optional<TilingFault>> FindTilingFault(const Shape& shape,
                                                   std::span<const Region> regions,
                                                   std::uint64_t corner_count_max);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_LAYOUT_TILING_H_
