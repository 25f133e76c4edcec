// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_GRID_H_
#define SEALPOINT_LIB_LAYOUT_GRID_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sealpoint/region.h"

namespace sealpoint::internal::layout {

// A tensor cut by planes: per dimension the strictly ascending interior cut positions in
// (0, shape[d]); the cells are the boxes between, numbered row-major (cell-major order of shards).
// Each cell may be cut further into runs by strictly ascending interior positions in
// (0, cell elements). Exact tiling holds by construction. A 0-d tensor is one cell.
struct Grid {
  std::vector<std::vector<std::uint64_t>> cuts;  // ndim vectors, interior cuts only
  // Empty, or one vector per cell (interior run cuts; empty vector: the cell is one shard).
  std::vector<std::vector<std::uint64_t>> run_cuts;
  friend bool operator==(const Grid&, const Grid&) = default;
};

struct GridMatch {
  Grid grid;
  std::vector<std::size_t> order;
};

// The grid with exactly the shards `regions`, if there is one, and for each of its shards (in the
// grid's order) the index of the region. Regions may be in any order; each passed CheckRegion for
// the shape. A match proves exact tiling; an empty list never matches. O(n log n) time and O(n)
// memory for n regions, regardless of their values.
std::optional<GridMatch> MatchGrid(const Shape& shape, std::span<const Region> regions);

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_GRID_H_
