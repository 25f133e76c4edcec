// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/region_algebra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sealpoint::internal::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Region RunOf(Shape extent, std::uint64_t begin, std::uint64_t end) {
  return {{.offset = Shape(extent.size(), 0), .extent = std::move(extent)}, {begin, end}};
}

std::uint64_t CountAll(const std::vector<Box>& boxes) {
  std::uint64_t count = 0;
  for (const Box& box : boxes) count += BoxElementCount(box);
  return count;
}

TEST(RowMajorStrides, EndWithOne) {
  EXPECT_THAT(RowMajorStrides({}), IsEmpty());
  EXPECT_THAT(RowMajorStrides({7}), ElementsAre(1));
  EXPECT_THAT(RowMajorStrides({2, 3, 4}), ElementsAre(12, 4, 1));
}

TEST(RowMajorStrides, PassThirtyTwoBits) {
  EXPECT_THAT(RowMajorStrides({2, 65536, 65536}), ElementsAre(1ull << 32, 65536, 1));
}

TEST(BoxContains, TakesEqualAndInnerBoxes) {
  const Box box{.offset = {2, 2}, .extent = {4, 4}};
  EXPECT_TRUE(BoxContains(box, box));
  EXPECT_TRUE(BoxContains(box, {.offset = {3, 2}, .extent = {3, 1}}));
  EXPECT_TRUE(BoxContains(Box{}, Box{}));
}

TEST(BoxContains, RefusesBoxesThatReachOut) {
  const Box box{.offset = {2, 2}, .extent = {4, 4}};
  EXPECT_FALSE(BoxContains(box, {.offset = {1, 2}, .extent = {2, 2}}));
  EXPECT_FALSE(BoxContains(box, {.offset = {2, 3}, .extent = {2, 4}}));
}

TEST(IntersectBoxes, GivesTheCommonPart) {
  const auto common =
      IntersectBoxes({.offset = {0, 4}, .extent = {6, 4}}, {.offset = {2, 0}, .extent = {9, 5}});
  EXPECT_EQ(common, (Box{.offset = {2, 4}, .extent = {4, 1}}));
}

TEST(IntersectBoxes, GivesNothingForBoxesThatTouch) {
  EXPECT_EQ(IntersectBoxes({.offset = {0}, .extent = {4}}, {.offset = {4}, .extent = {4}}),
            std::nullopt);
}

TEST(IntersectBoxes, ScalarsShareTheirElement) { EXPECT_EQ(IntersectBoxes({}, {}), Box{}); }

TEST(DecomposeRun, AFullRunIsItsBox) {
  const Region region = Region::Of({.offset = {3, 1, 4}, .extent = {1, 5, 9}});
  EXPECT_THAT(DecomposeRun(region), ElementsAre(region.box));
}

TEST(DecomposeRun, AScalarIsOneBox) {
  EXPECT_THAT(DecomposeRun(Region::Whole({})), ElementsAre(Box{}));
}

TEST(DecomposeRun, InOneDimensionIsOneBox) {
  const Region region{{.offset = {10}, .extent = {20}}, {3, 9}};
  EXPECT_THAT(DecomposeRun(region), ElementsAre(Box{.offset = {13}, .extent = {6}}));
}

TEST(DecomposeRun, InsideOneRowIsOneBox) {
  EXPECT_THAT(DecomposeRun(RunOf({4, 10}, 21, 24)),
              ElementsAre(Box{.offset = {2, 1}, .extent = {1, 3}}));
}

TEST(DecomposeRun, WholeRowsAreOneBox) {
  EXPECT_THAT(DecomposeRun(RunOf({4, 10}, 10, 30)),
              ElementsAre(Box{.offset = {1, 0}, .extent = {2, 10}}));
}

TEST(DecomposeRun, InTwoDimensionsIsHeadBodyAndTail) {
  EXPECT_THAT(
      DecomposeRun(RunOf({4, 10}, 7, 32)),
      ElementsAre(Box{.offset = {0, 7}, .extent = {1, 3}}, Box{.offset = {1, 0}, .extent = {2, 10}},
                  Box{.offset = {3, 0}, .extent = {1, 2}}));
}

TEST(DecomposeRun, AHeadThatFillsItsSlabCarriesOn) {
  // From the last element of slab 0: the row and the plane above it are full already.
  EXPECT_THAT(DecomposeRun(RunOf({3, 2, 2}, 3, 9)),
              ElementsAre(Box{.offset = {0, 1, 1}, .extent = {1, 1, 1}},
                          Box{.offset = {1, 0, 0}, .extent = {1, 2, 2}},
                          Box{.offset = {2, 0, 0}, .extent = {1, 1, 1}}));
}

TEST(DecomposeRun, ToTheEndHasNoTail) {
  EXPECT_THAT(DecomposeRun(RunOf({2, 3}, 1, 6)),
              ElementsAre(Box{.offset = {0, 1}, .extent = {1, 2}},
                          Box{.offset = {1, 0}, .extent = {1, 3}}));
}

TEST(DecomposeRun, InFiveDimensionsNeedsNineBoxesAtMost) {
  const Region region = RunOf({3, 3, 3, 3, 3}, 1, 242);
  EXPECT_EQ(DecomposeRun(region).size(), 9u);
  EXPECT_EQ(CountAll(DecomposeRun(region)), 241u);
}

TEST(DecomposeRun, WorksBeyond32Bits) {
  // 2^20 rows of 2^20 elements; from row 4096 + 5 elements to row 4098 + 7.
  const Region region =
      RunOf({1ull << 20, 1ull << 20}, (1ull << 32) + 5, (1ull << 32) + (2 << 20) + 7);
  EXPECT_THAT(DecomposeRun(region),
              ElementsAre(Box{.offset = {4096, 5}, .extent = {1, (1 << 20) - 5}},
                          Box{.offset = {4097, 0}, .extent = {1, 1 << 20}},
                          Box{.offset = {4098, 0}, .extent = {1, 7}}));
}

TEST(DecomposeRun, WorksUpToTheLastElementThat64BitsCanNumber) {
  const std::uint64_t rows = (1ull << 32) - 1;
  const std::uint64_t columns = (1ull << 32) + 1;  // together 2^64 - 1
  EXPECT_THAT(DecomposeRun(RunOf({rows, columns}, ~0ull - 1, ~0ull)),
              ElementsAre(Box{.offset = {rows - 1, columns - 1}, .extent = {1, 1}}));
}

TEST(IntersectRegions, OfDisjointBoxesIsEmpty) {
  EXPECT_THAT(IntersectRegions(Region::Of({.offset = {0}, .extent = {4}}),
                               Region::Of({.offset = {4}, .extent = {4}})),
              IsEmpty());
}

TEST(IntersectRegions, OfDisjointRunsInOneBoxIsEmpty) {
  EXPECT_THAT(IntersectRegions(RunOf({4, 4}, 0, 7), RunOf({4, 4}, 7, 16)), IsEmpty());
}

TEST(IntersectRegions, OfARunAndAColumnBlockIsItsPartOfEachRow) {
  const Region columns = Region::Of({.offset = {0, 2}, .extent = {4, 2}});
  EXPECT_THAT(
      IntersectRegions(RunOf({4, 4}, 3, 11), columns),
      ElementsAre(Box{.offset = {0, 3}, .extent = {1, 1}}, Box{.offset = {1, 2}, .extent = {1, 2}},
                  Box{.offset = {2, 2}, .extent = {1, 1}}));
}

TEST(IntersectRegions, WorksBeyond32Bits) {
  const Region a{{.offset = {1ull << 33}, .extent = {1ull << 33}}, {0, 1ull << 32}};
  const Region b = Region::Of({.offset = {(1ull << 33) + (1ull << 31)}, .extent = {1ull << 40}});
  EXPECT_THAT(IntersectRegions(a, b),
              ElementsAre(Box{.offset = {(1ull << 33) + (1ull << 31)}, .extent = {1ull << 31}}));
}

TEST(RegionsOverlap, IfTheyShareAnElement) {
  EXPECT_TRUE(RegionsOverlap(RunOf({4, 4}, 0, 8), RunOf({4, 4}, 7, 16)));
  EXPECT_FALSE(RegionsOverlap(RunOf({4, 4}, 0, 7), RunOf({4, 4}, 7, 16)));
}

TEST(SubRun, CountsFromTheBeginOfTheRun) {
  const Region region = RunOf({8, 8}, 10, 50);
  EXPECT_EQ(SubRun(region, 5, 40), RunOf({8, 8}, 15, 50));
}

TEST(CoveringRun, OfAPartOfOneRowIsExact) {
  EXPECT_EQ(
      CoveringRun({.offset = {0, 0}, .extent = {4, 10}}, {.offset = {2, 3}, .extent = {1, 4}}),
      (sealpoint::Run{23, 27}));
}

TEST(CoveringRun, OfColumnsSpansTheRowsBetween) {
  EXPECT_EQ(
      CoveringRun({.offset = {5, 5}, .extent = {4, 10}}, {.offset = {6, 7}, .extent = {2, 3}}),
      (sealpoint::Run{12, 25}));
}

TEST(CoveringRun, OfAScalarIsItsElement) { EXPECT_EQ(CoveringRun({}, {}), (sealpoint::Run{0, 1})); }

TEST(CoveringRun, WorksBeyond32Bits) {
  EXPECT_EQ(CoveringRun({.offset = {0, 0}, .extent = {1ull << 20, 1ull << 20}},
                        {.offset = {4096, 1}, .extent = {2, 1}}),
            (sealpoint::Run{(1ull << 32) + 1, (1ull << 32) + (1ull << 20) + 2}));
}

}  // namespace
}  // namespace sealpoint::internal::layout
