// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <vector>

#include "lib/layout/grid.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/tiling.h"
#include "tests/property/layout_generators.h"
#include "tests/support/layout/grid_regions.h"

namespace sealpoint::internal {
namespace {

using test::AnyCuts;
using test::AnyIn;
using test::AnyShape;
using test::AnyTiling;
using test::DisturbAtRandom;
using test::GridRegions;
using test::ShuffleAtRandom;

// In the form that MatchGrid gives: without a single run cut there are no lists of them.
layout::Grid AnyGrid(const Shape& shape) {
  layout::Grid grid;
  for (const std::uint64_t extent : shape) grid.cuts.push_back(AnyCuts(extent));
  if (AnyIn(0, 1) == 0) return grid;
  bool has_cut = false;
  for (std::uint64_t cell = 0; cell < test::GridCellCount(grid); ++cell) {
    grid.run_cuts.push_back(AnyCuts(layout::BoxElementCount(test::GridCell(shape, grid, cell))));
    has_cut = has_cut || !grid.run_cuts.back().empty();
  }
  if (!has_cut) grid.run_cuts.clear();
  return grid;
}

RC_GTEST_PROP(GridProperty, Tiles, ()) {
  const Shape shape = AnyShape();
  const layout::Grid grid = AnyGrid(shape);
  const std::vector<Region> regions = GridRegions(shape, grid);
  RC_ASSERT(!layout::FindTilingFault(shape, regions, 1 << 24).value().has_value());
}

RC_GTEST_PROP(MatchGridProperty, FindsTheGridOfItsRegionsInAnyOrder, ()) {
  const Shape shape = AnyShape();
  const layout::Grid grid = AnyGrid(shape);
  const std::vector<Region> regions = GridRegions(shape, grid);
  std::vector<Region> shuffled = regions;
  ShuffleAtRandom(shuffled);
  const auto match = layout::MatchGrid(shape, shuffled);
  RC_ASSERT(match.has_value());
  RC_ASSERT(match->grid == grid);
  RC_ASSERT(match->order.size() == regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    RC_ASSERT(shuffled[match->order[i]] == regions[i]);
  }
}

// Whatever is matched is a grid of exactly these regions and tiles; so a disturbed set that does
// not tile is never matched.
RC_GTEST_PROP(MatchGridProperty, MatchesNothingThatDoesNotTile, ()) {
  const Shape shape = AnyShape();
  std::vector<Region> regions = GridRegions(shape, AnyGrid(shape));
  DisturbAtRandom(shape, regions);
  const bool tiles = !layout::FindTilingFault(shape, regions, 1 << 24).value().has_value();
  RC_CLASSIFY(tiles, "tiles by chance");
  const auto match = layout::MatchGrid(shape, regions);
  RC_ASSERT(tiles || !match.has_value());
}

RC_GTEST_PROP(MatchGridProperty, ExplainsWhateverItMatches, ()) {
  const Shape shape = AnyShape(3, 4);
  const std::vector<Region> regions = AnyTiling(shape);
  const auto match = layout::MatchGrid(shape, regions);
  RC_CLASSIFY(match.has_value(), "a grid");
  if (!match) return;
  const std::vector<Region> of_grid = GridRegions(shape, match->grid);
  RC_ASSERT(of_grid.size() == regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    RC_ASSERT(regions[match->order[i]] == of_grid[i]);
  }
}

}  // namespace
}  // namespace sealpoint::internal
