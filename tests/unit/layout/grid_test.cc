// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/layout/grid_regions.h"

namespace sealpoint::internal::layout {
namespace {

using test::GridRegions;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Region Plain(Shape offset, Shape extent) {
  return Region::Of(Box{.offset = std::move(offset), .extent = std::move(extent)});
}

Region WithRun(Region region, std::uint64_t begin, std::uint64_t end) {
  region.run = {begin, end};
  return region;
}

// Two rows of three cells; the second and the last cell are cut into runs.
const Shape kShape = {4, 9};
Grid SampleGrid() {
  return Grid{.cuts = {{1}, {2, 5}}, .run_cuts = {{}, {1, 2}, {}, {}, {}, {11}}};
}

TEST(Grid, ListsShardsByCellThenRun) {
  const auto regions = GridRegions(kShape, SampleGrid());
  ASSERT_THAT(regions, SizeIs(9));
  const Region second = Plain({0, 2}, {1, 3});
  EXPECT_EQ(regions[1], WithRun(second, 0, 1));
  EXPECT_EQ(regions[2], WithRun(second, 1, 2));
  EXPECT_EQ(regions[3], WithRun(second, 2, 3));
  EXPECT_EQ(regions[8], WithRun(Plain({1, 5}, {3, 4}), 11, 12));
}

TEST(MatchGrid, FindsTheGridOfAWholeTensor) {
  const std::vector<Region> regions = {Region::Whole(kShape)};
  const auto match = MatchGrid(kShape, regions);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->grid, (Grid{.cuts = {{}, {}}}));
  EXPECT_THAT(match->order, ElementsAre(0));
}

TEST(MatchGrid, FindsTheGridOfAScalar) {
  const std::vector<Region> regions = {Region::Whole({})};
  const auto match = MatchGrid({}, regions);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->grid, Grid{});
}

TEST(MatchGrid, FindsAGridWithRunsInAnyOrder) {
  auto regions = GridRegions(kShape, SampleGrid());
  std::swap(regions[0], regions[7]);
  std::swap(regions[2], regions[3]);
  const auto match = MatchGrid(kShape, regions);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->grid, SampleGrid());
  EXPECT_THAT(match->order, ElementsAre(7, 1, 3, 2, 4, 5, 6, 0, 8));
}

TEST(MatchGrid, FindsFiveDimensions) {
  const Shape shape = {2, 3, 2, 5, 4};
  const Grid grid{.cuts = {{1}, {}, {1}, {2, 4}, {3}}};
  EXPECT_EQ(MatchGrid(shape, GridRegions(shape, grid))->grid, grid);
}

TEST(MatchGrid, WorksBeyond32Bits) {
  const Shape shape = {1ull << 33, 1ull << 30};
  const Grid grid{.cuts = {{1ull << 31, 1ull << 32}, {}}, .run_cuts = {{}, {(1ull << 60) + 1}, {}}};
  EXPECT_EQ(MatchGrid(shape, GridRegions(shape, grid))->grid, grid);
}

TEST(MatchGrid, RefusesNoRegion) {
  EXPECT_FALSE(MatchGrid({4}, {}));
  EXPECT_FALSE(MatchGrid({}, {}));
  EXPECT_FALSE(MatchGrid({0}, {}));
}

TEST(MatchGrid, RefusesAPinwheel) {
  const std::vector<Region> regions = {Plain({0, 0}, {1, 2}), Plain({0, 2}, {2, 1}),
                                       Plain({2, 1}, {1, 2}), Plain({1, 0}, {2, 1}),
                                       Plain({1, 1}, {1, 1})};
  EXPECT_FALSE(MatchGrid({3, 3}, regions));
}

TEST(MatchGrid, RefusesAMissingCell) {
  auto regions = GridRegions({4, 4}, Grid{.cuts = {{2}, {2}}});
  regions.pop_back();
  EXPECT_FALSE(MatchGrid({4, 4}, regions));
}

TEST(MatchGrid, RefusesACellHeldTwiceInPlaceOfAnother) {
  auto regions = GridRegions({4, 4}, Grid{.cuts = {{2}, {2}}});
  regions[3] = regions[1];
  regions.push_back(regions[2]);
  EXPECT_FALSE(MatchGrid({4, 4}, regions));
}

TEST(MatchGrid, RefusesACellHeldTwice) {
  auto regions = GridRegions({4, 4}, Grid{.cuts = {{2}, {2}}});
  regions.push_back(regions[0]);
  EXPECT_FALSE(MatchGrid({4, 4}, regions));
}

TEST(MatchGrid, RefusesARegionBesidesTheCells) {
  const std::vector<Region> regions = {Plain({0}, {4}), Plain({4}, {4}), Plain({0}, {8})};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesABoxThatEndsBeforeTheNextCut) {
  const std::vector<Region> regions = {Plain({0}, {3}), Plain({4}, {4})};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesABoxThatSpansACut) {
  const std::vector<Region> regions = {Plain({0}, {5}), Plain({4}, {4})};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesCellsThatDoNotBeginAtZero) {
  const std::vector<Region> regions = {Plain({2}, {6})};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesAGapBetweenRuns) {
  const Region whole = Region::Whole({8});
  const std::vector<Region> regions = {WithRun(whole, 0, 3), WithRun(whole, 4, 8)};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesRunsThatOverlap) {
  const Region whole = Region::Whole({8});
  const std::vector<Region> regions = {WithRun(whole, 0, 5), WithRun(whole, 4, 8)};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesRunsThatBeginLate) {
  const std::vector<Region> regions = {WithRun(Region::Whole({8}), 1, 8)};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesRunsThatEndEarly) {
  const std::vector<Region> regions = {WithRun(Region::Whole({8}), 0, 7)};
  EXPECT_FALSE(MatchGrid({8}, regions));
}

TEST(MatchGrid, RefusesACellWithoutShardWhereAnotherHasTwo) {
  for (std::size_t missing = 0; missing < 4; ++missing) {
    auto regions = GridRegions({4, 4}, Grid{.cuts = {{2}, {2}}});
    const Region twice = regions[(missing + 1) % 4];
    regions[missing] = WithRun(twice, 0, 1);
    regions[(missing + 1) % 4] = WithRun(twice, 1, 4);
    EXPECT_FALSE(MatchGrid({4, 4}, regions)) << missing;
  }
}

TEST(MatchGrid, RefusesCutsWhoseCellsWouldNotFitMemory) {
  // A diagonal of 4 elements cuts 20 dimensions of extent 4 into 2^40 cells.
  std::vector<Region> regions;
  Shape shape(40, 1);
  for (std::size_t d = 0; d < 20; ++d) shape[d] = 4;
  for (std::uint64_t i = 0; i < 4; ++i) {
    Shape offset(40, 0);
    for (std::size_t d = 0; d < 20; ++d) offset[d] = i;
    regions.push_back(Plain(offset, Shape(40, 1)));
  }
  EXPECT_FALSE(MatchGrid(shape, regions));
}

TEST(MatchGrid, RefusesCutsWhoseCellCountWrapsAround) {
  // 2^64 cells are 0 in 64 bits. Such a shape passes no other check; this one must hold alone.
  const Shape shape(64, 2);
  const std::vector<Region> regions = {Plain(Shape(64, 0), Shape(64, 1)),
                                       Plain(Shape(64, 1), Shape(64, 1))};
  EXPECT_FALSE(MatchGrid(shape, regions));
}

}  // namespace
}  // namespace sealpoint::internal::layout
