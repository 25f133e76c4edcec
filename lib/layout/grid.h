// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_GRID_H_
#define SEALPOINT_LIB_LAYOUT_GRID_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sealpoint/region.h"

namespace sealpoint::internal {

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

// Cells in the grid, and shards (runs) in it. Precondition: a grid that passed CheckGrid, or cuts
// small enough for the product to fit.
std::uint64_t GridCellCount(const Grid& grid);

// The box of a cell.
Box GridCell(const Shape& shape, const Grid& grid, std::uint64_t cell);

// All shard regions in cell-major, then run order.
std::vector<Region> GridRegions(const Shape& shape, const Grid& grid);

// The grid whose shards are exactly `regions`, if there is one, and for each of its shards (in the
// grid's order) the index of the region. Regions may come in any order. O(n log n).
struct GridMatch {
  Grid grid;
  std::vector<std::size_t> order;
};
std::optional<GridMatch> MatchGrid(const Shape& shape, std::span<const Region> regions);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_LAYOUT_GRID_H_
