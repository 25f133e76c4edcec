// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_LAYOUT_GRID_REGIONS_H_
#define SEALPOINT_TESTS_SUPPORT_LAYOUT_GRID_REGIONS_H_

#include <cstdint>
#include <vector>

#include "lib/layout/grid.h"
#include "lib/layout/region_algebra.h"
#include "sealpoint/region.h"

namespace sealpoint::test {

// Number of cells of a grid.
inline std::uint64_t GridCellCount(const internal::layout::Grid& grid) {
  std::uint64_t count = 1;
  for (const auto& cuts : grid.cuts) count *= cuts.size() + 1;
  return count;
}

// Box of a cell. Precondition: cell < GridCellCount.
inline Box GridCell(const Shape& shape, const internal::layout::Grid& grid, std::uint64_t cell) {
  Box box{.offset = Shape(shape.size()), .extent = Shape(shape.size())};
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto& cuts = grid.cuts[d];
    const std::uint64_t index = cell % (cuts.size() + 1);
    box.offset[d] = index == 0 ? 0 : cuts[index - 1];
    box.extent[d] = (index == cuts.size() ? shape[d] : cuts[index]) - box.offset[d];
    cell /= cuts.size() + 1;
  }
  return box;
}

// Regions of all shards in cell-major, then run order.
inline std::vector<Region> GridRegions(const Shape& shape, const internal::layout::Grid& grid) {
  std::vector<Region> regions;
  const std::uint64_t cell_count = GridCellCount(grid);
  for (std::uint64_t cell = 0; cell < cell_count; ++cell) {
    const Region whole = Region::Of(GridCell(shape, grid, cell));
    std::uint64_t begin = 0;
    if (!grid.run_cuts.empty()) {
      for (const std::uint64_t cut : grid.run_cuts[cell]) {
        regions.push_back(internal::layout::SubRun(whole, begin, cut));
        begin = cut;
      }
    }
    regions.push_back(internal::layout::SubRun(whole, begin, whole.run.end));
  }
  return regions;
}

}  // namespace sealpoint::test

#endif  // SEALPOINT_TESTS_SUPPORT_LAYOUT_GRID_REGIONS_H_
