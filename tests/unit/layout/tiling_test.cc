// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/tiling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sealpoint::internal::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint64_t kManyCorners = 1 << 24;

Region Plain(Shape offset, Shape extent) {
  return Region::Of(Box{.offset = std::move(offset), .extent = std::move(extent)});
}

std::optional<TilingFault> Fault(const Shape& shape, const std::vector<Region>& regions) {
  return FindTilingFault(shape, regions, kManyCorners).value();
}

// `count`^2 equal tiles of a square.
std::vector<Region> Tiles(std::uint64_t count, std::uint64_t size) {
  std::vector<Region> tiles;
  for (std::uint64_t i = 0; i < count; ++i) {
    for (std::uint64_t j = 0; j < count; ++j)
      tiles.push_back(Plain({i * size, j * size}, {size, size}));
  }
  return tiles;
}

TEST(Tiling, OneWholeRegionTiles) { EXPECT_FALSE(Fault({4, 5}, {Region::Whole({4, 5})})); }

TEST(Tiling, AScalarIsTiledByItself) { EXPECT_FALSE(Fault({}, {Region::Whole({})})); }

TEST(Tiling, AScalarHeldTwiceIsAnOverlap) {
  const auto fault = Fault({}, {Region::Whole({}), Region::Whole({})});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, IsEmpty());
  EXPECT_EQ(fault->times_covered, 2u);
  EXPECT_THAT(fault->holders, ElementsAre(0, 1));
}

TEST(Tiling, NoRegionIsAHoleAtTheOrigin) {
  const auto fault = Fault({4, 5}, {});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(0, 0));
  EXPECT_EQ(fault->times_covered, 0u);
  EXPECT_THAT(fault->holders, IsEmpty());
}

TEST(Tiling, NoRegionIsAHoleInAScalar) { EXPECT_TRUE(Fault({}, {})); }

TEST(Tiling, AnEmptyTensorIsTiledByNothing) { EXPECT_FALSE(Fault({3, 0}, {})); }

TEST(Tiling, AnEmptyTensorWithARegionIsRefused) {
  const std::vector<Region> regions = {Region::Whole({3, 0})};
  const auto fault = FindTilingFault({3, 0}, regions, kManyCorners);
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().code(), Code::kInvalidArgument);
}

TEST(Tiling, ThreeIdenticalRegionsAreCountedAndTwoNamed) {
  const Region whole = Region::Whole({4, 5});
  const auto fault = Fault({4, 5}, {whole, whole, whole});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->times_covered, 3u);
  EXPECT_THAT(fault->holders, ElementsAre(0, 1));
}

TEST(Tiling, APinwheelTiles) {
  // Five boxes that no sequence of cuts gives.
  EXPECT_FALSE(Fault({3, 3}, {Plain({0, 0}, {1, 2}), Plain({0, 2}, {2, 1}), Plain({2, 1}, {1, 2}),
                              Plain({1, 0}, {2, 1}), Plain({1, 1}, {1, 1})}));
}

TEST(Tiling, AHoleIsNamedByItsFirstElement) {
  auto tiles = Tiles(4, 8);
  tiles.erase(tiles.begin() + 6);  // row 1, column 2
  const auto fault = Fault({32, 32}, tiles);
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(8, 16));
  EXPECT_EQ(fault->times_covered, 0u);
  EXPECT_THAT(fault->holders, IsEmpty());
}

TEST(Tiling, AnOverlapIsNamedByItsFirstElementAndItsHolders) {
  auto tiles = Tiles(4, 8);
  tiles.push_back(Plain({10, 20}, {1, 1}));
  const auto fault = Fault({32, 32}, tiles);
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(10, 20));
  EXPECT_EQ(fault->times_covered, 2u);
  EXPECT_THAT(fault->holders, ElementsAre(6, 16));
}

TEST(Tiling, AHoleAndAnOverlapOfEqualSizeAreBothSeen) {
  // The element counts match; only the positions differ.
  const auto fault = Fault({8}, {Plain({0}, {4}), Plain({2}, {4})});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(2));
  EXPECT_EQ(fault->times_covered, 2u);
}

TEST(Tiling, AMissingLastElementIsSeen) {
  const auto fault = Fault({3, 3}, {Plain({0, 0}, {2, 3}), Plain({2, 0}, {1, 2})});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(2, 2));
  EXPECT_EQ(fault->times_covered, 0u);
}

TEST(Tiling, DimensionsThatNobodyDividesAreZeroInTheReport) {
  const auto fault = Fault({5, 8, 7}, {Plain({0, 0, 0}, {5, 3, 7}), Plain({0, 4, 0}, {5, 4, 7})});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(0, 3, 0));
}

TEST(Tiling, RunsOfOneBoxTile) {
  std::vector<Region> runs;
  for (const sealpoint::Run run : {sealpoint::Run{0, 7}, sealpoint::Run{7, 8},
                                   sealpoint::Run{8, 23}, sealpoint::Run{23, 60}}) {
    runs.push_back({Region::Whole({3, 4, 5}).box, run});
  }
  EXPECT_FALSE(Fault({3, 4, 5}, runs));
}

TEST(Tiling, AGapBetweenRunsIsNamedInCoordinates) {
  const Box box = Region::Whole({3, 4, 5}).box;
  const auto fault = Fault({3, 4, 5}, {{box, {0, 33}}, {box, {34, 60}}});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(1, 2, 3));
  EXPECT_EQ(fault->times_covered, 0u);
}

TEST(Tiling, AnOverlapOfRunsNamesTheRunsAndNotTheirBox) {
  const Box box = Region::Whole({4, 5}).box;
  const auto fault = Fault({4, 5}, {{box, {15, 20}}, {box, {0, 8}}, {box, {7, 15}}});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(1, 2));
  EXPECT_EQ(fault->times_covered, 2u);
  EXPECT_THAT(fault->holders, ElementsAre(1, 2));
}

TEST(Tiling, WorksInFiveDimensions) {
  std::vector<Region> regions;
  for (std::uint64_t i = 0; i < 32; ++i) {
    regions.push_back(Plain({i / 16 * 2, i / 8 % 2 * 2, i / 4 % 2 * 2, i / 2 % 2 * 2, i % 2 * 2},
                            {2, 2, 2, 2, 2}));
  }
  EXPECT_FALSE(Fault({4, 4, 4, 4, 4}, regions));
  regions[13].box.extent[4] = 1;
  regions[13].run.end = 16;
  const auto fault = Fault({4, 4, 4, 4, 4}, regions);
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(0, 2, 2, 0, 3));
}

TEST(Tiling, WorksBeyond32Bits) {
  const Shape shape = {1ull << 33, 1ull << 20};
  const Region first = Plain({0, 0}, {(1ull << 32) + 1, 1ull << 20});
  EXPECT_FALSE(Fault(shape, {first, Plain({(1ull << 32) + 1, 0}, {(1ull << 32) - 1, 1ull << 20})}));
  const auto fault = Fault(shape, {first, Plain({1ull << 32, 0}, {1ull << 32, 1ull << 20})});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(1ull << 32, 0));
}

TEST(Tiling, WorksWithADimensionOf64Bits) {
  EXPECT_FALSE(Fault({~0ull}, {Plain({0}, {~0ull - 1}), Plain({~0ull - 1}, {1})}));
  const auto fault = Fault({~0ull}, {Plain({0}, {~0ull - 1})});
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(~0ull - 1));
}

TEST(Tiling, WorksWhereCornersNeedMoreThan64Bits) {
  // Widths 33 + 33; both dimensions are divided.
  const std::uint64_t half = 1ull << 31;
  const Shape shape = {2 * half - 1, 2 * half};
  std::vector<Region> regions = {Plain({0, 0}, {half, half}), Plain({0, half}, {half, half}),
                                 Plain({half, 0}, {half - 1, half}),
                                 Plain({half, half}, {half - 1, half})};
  EXPECT_FALSE(Fault(shape, regions));
  regions[3] = Plain({half, half + 5}, {half - 1, half - 5});
  const auto fault = Fault(shape, regions);
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->element, ElementsAre(half, half));
  EXPECT_EQ(fault->times_covered, 0u);
}

TEST(Tiling, RefusesAShapeWhoseElementCountDoesNotFit) {
  const auto fault = FindTilingFault({1ull << 32, 1ull << 32}, {}, kManyCorners);
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().code(), Code::kLimitExceeded);
}

TEST(Tiling, TakesAsManyCornersAsTheLimitAndNotOneMore) {
  // 4 tiles and the tensor, 4 corners each.
  const auto tiles = Tiles(2, 8);
  EXPECT_TRUE(FindTilingFault({16, 16}, tiles, 20).ok());
  const auto fault = FindTilingFault({16, 16}, tiles, 19);
  ASSERT_FALSE(fault.ok());
  EXPECT_EQ(fault.error().code(), Code::kLimitExceeded);
}

TEST(Tiling, RefusesMoreCornersThanMemoryOr64BitsHold) {
  // 2^40 corners per box, and 2^64 for both boxes, which is 0 in 64 bits.
  for (const std::size_t ndim : {40u, 63u}) {
    const std::vector<Region> regions = {Plain(Shape(ndim, 0), Shape(ndim, 1))};
    const auto fault = FindTilingFault(Shape(ndim, 2), regions, kManyCorners);
    ASSERT_FALSE(fault.ok());
    EXPECT_EQ(fault.error().code(), Code::kLimitExceeded);
  }
}

TEST(Tiling, CornerLimitIsTheLowerOfTotalAndPerShard) {
  const Limits limits{.tiling_corner_count_max = 100, .tiling_corners_per_shard_max = 10};
  EXPECT_EQ(TilingCornerCountMax(limits, 2), 30u);
  EXPECT_EQ(TilingCornerCountMax(limits, 50), 100u);
  EXPECT_EQ(TilingCornerCountMax({.tiling_corners_per_shard_max = ~0ull}, 2),
            Limits{}.tiling_corner_count_max);
}

TEST(Tiling, ChecksTensOfThousandsOfBoxes) {
  auto tiles = Tiles(256, 4);
  ASSERT_EQ(tiles.size(), 65536u);
  EXPECT_FALSE(Fault({1024, 1024}, tiles));
  tiles[40000].box.offset[1] += 1;
  EXPECT_TRUE(Fault({1024, 1024}, tiles));
}

}  // namespace
}  // namespace sealpoint::internal::layout
