// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_TILING_H_
#define SEALPOINT_LIB_LAYOUT_TILING_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/base/checked_math.h"
#include "sealpoint/limits.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::layout {

// Exact tiling by signed corner sums. The indicator function of a half-open box is the signed sum
// of the indicators of the 2^ndim orthants at its corners, and orthant indicators are linearly
// independent; so boxes cover every element of a tensor exactly once if and only if the signed
// corners of all boxes cancel against those of the tensor. At the lexicographically first
// corner that does not cancel, the element is covered 1 + (sum) times, which identifies the hole or
// the overlap. Runs are decomposed into boxes first. The cost is O(c log c) for c corners;
// dimensions that every box spans fully are left out of the corners. See spec/decisions/0003.
struct TilingFault {
  std::vector<std::uint64_t> element;  // coordinates of the first badly covered element
  std::uint64_t times_covered = 0;     // 0: a hole; 2 or more: an overlap
  // Indices of up to two regions that hold the element.
  std::vector<std::size_t> holders;
};

// Returns nothing if `regions` tile the shape exactly. An empty tensor is tiled by an empty list,
// every other one needs at least one region. Precondition: each region passed CheckRegion for the
// shape. Errors: LimitExceeded if the shape's element count does not fit 64 bits, or if the corners
// (including those of the tensor) exceed `corner_count_max`, which bounds time and memory;
// InvalidArgument if an empty tensor has regions.
Result<std::optional<TilingFault>> FindTilingFault(const Shape& shape,
                                                   std::span<const Region> regions,
                                                   std::uint64_t corner_count_max);
// The same for regions generated on demand, without a list of them. Uses at most 8 bytes for each
// begin and each end in a divided dimension, and 16 per corner.
Result<std::optional<TilingFault>> FindTilingFault(
    const Shape& shape, std::size_t region_count,
    const std::function<Region(std::size_t)>& region_at, std::uint64_t corner_count_max);

// The limit on the corners of one tensor of `shard_count` shards. It grows with the shards, so that
// the cost of verifying an index is bounded by its size.
constexpr std::uint64_t TilingCornerCountMax(const Limits& limits, std::size_t shard_count) {
  const auto per_shard =
      CheckedMul<std::uint64_t>(limits.tiling_corners_per_shard_max, shard_count + 1);
  return std::min(limits.tiling_corner_count_max, per_shard.value_or(~std::uint64_t{0}));
}

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_TILING_H_
