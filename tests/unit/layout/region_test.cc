// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace sealpoint {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

Region Plain(Shape offset, Shape extent) {
  return Region::Of(Box{.offset = std::move(offset), .extent = std::move(extent)});
}

Code CheckedCode(const Shape& shape, const Region& region) {
  return CheckRegion(shape, region).code();
}

TEST(ElementCount, IsOneForAScalar) { EXPECT_EQ(ElementCount({}).value(), 1u); }

TEST(ElementCount, MultipliesBeyond32Bits) {
  EXPECT_EQ(ElementCount({65536, 65536}).value(), 1ull << 32);
  EXPECT_EQ(ElementCount({1ull << 31, 3}).value(), 3ull << 31);
  EXPECT_EQ(ElementCount({kMax}).value(), kMax);
}

TEST(ElementCount, RefusesAProductBeyond64Bits) {
  const auto count = ElementCount({1ull << 32, 1ull << 32});
  ASSERT_FALSE(count.ok());
  EXPECT_EQ(count.error().code(), Code::kLimitExceeded);
  EXPECT_THAT(count.error().message(), testing::HasSubstr("[4294967296, 4294967296]"));
}

TEST(ElementCount, IsZeroForAnEmptyTensorHoweverLargeTheOtherExtents) {
  EXPECT_EQ(ElementCount({kMax, kMax, 0}).value(), 0u);
}

TEST(RegionText, ShowsIntervalsAndNoFullRun) {
  EXPECT_EQ(Plain({0, 8}, {4, 8}).ToString(), "[0:4, 8:16]");
}

TEST(RegionText, ShowsAPartialRun) {
  Region region = Plain({0, 8}, {4, 8});
  region.run = {5, 20};
  EXPECT_EQ(region.ToString(), "[0:4, 8:16] run 5:20");
  region.run = {0, 31};
  EXPECT_EQ(region.ToString(), "[0:4, 8:16] run 0:31");
}

TEST(RegionText, ShowsAScalarAsEmptyBrackets) {
  EXPECT_EQ(Region::Whole({}).ToString(), "[]");
  EXPECT_EQ(ShapeToString({}), "[]");
}

TEST(RegionText, ShowsShapes) { EXPECT_EQ(ShapeToString({8192, 1, 3}), "[8192, 1, 3]"); }

TEST(RegionWhole, CoversEachDimension) {
  const Region region = Region::Whole({3, 5});
  EXPECT_EQ(region.box, (Box{.offset = {0, 0}, .extent = {3, 5}}));
  EXPECT_EQ(region.run, (sealpoint::Run{0, 15}));
  EXPECT_EQ(region.element_count(), 15u);
}

TEST(CheckRegion, TakesAScalar) { EXPECT_EQ(CheckedCode({}, Region::Whole({})), Code::kOk); }

TEST(CheckRegion, TakesBoxesUpToTheEnd) {
  EXPECT_EQ(CheckedCode({4, 6}, Plain({3, 2}, {1, 4})), Code::kOk);
  EXPECT_EQ(CheckedCode({kMax}, Plain({kMax - 1}, {1})), Code::kOk);
}

TEST(CheckRegion, TakesARunThatEndsWithTheBox) {
  Region region = Region::Whole({1ull << 20, 1ull << 20});
  region.run.begin = region.run.end - 1;
  EXPECT_EQ(CheckedCode({1ull << 20, 1ull << 20}, region), Code::kOk);
}

TEST(CheckRegion, RefusesAnotherNumberOfOffsets) {
  EXPECT_EQ(CheckedCode({4, 4}, {{.offset = {0}, .extent = {4, 4}}, {0, 1}}),
            Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAnotherNumberOfExtents) {
  EXPECT_EQ(CheckedCode({4, 4}, {{.offset = {0, 0}, .extent = {4, 4, 1}}, {0, 1}}),
            Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesABoxForAScalar) {
  EXPECT_EQ(CheckedCode({}, Plain({0}, {1})), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAnEmptyExtentAndNamesTheDimension) {
  const Status status = CheckRegion({4, 4}, {{.offset = {0, 2}, .extent = {4, 0}}, {0, 1}});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), testing::HasSubstr("empty in dimension 1"));
}

TEST(CheckRegion, RefusesARunWithoutElements) {
  EXPECT_EQ(CheckedCode({4}, {{.offset = {0}, .extent = {4}}, {2, 2}}), Code::kInvalidArgument);
}

TEST(HasElements, SaysSoOfWhatLiesInTheShape) {
  EXPECT_TRUE(HasElements({4, 4}, Plain({0, 1}, {4, 3})).value());
  EXPECT_TRUE(HasElements({}, Region::Whole({})).value());
  EXPECT_FALSE(HasElements({4, 4}, Plain({0, 4}, {4, 0})).value());
  EXPECT_FALSE(HasElements({0, 4}, Plain({0, 0}, {0, 4})).value());
  EXPECT_FALSE(HasElements({kMax, kMax, 0}, Plain({0, 0, 0}, {kMax, kMax, 0})).value());
  EXPECT_FALSE(HasElements({4}, {{.offset = {0}, .extent = {4}}, {2, 2}}).value());
}

TEST(HasElements, RefusesWhatIsNoneOfItsRegions) {
  const auto code = [](const Shape& shape, const Region& region) {
    return HasElements(shape, region).status().code();
  };
  EXPECT_EQ(code({4, 4}, Plain({5, 0}, {0, 4})), Code::kInvalidArgument);
  EXPECT_EQ(code({0}, Plain({0}, {1})), Code::kInvalidArgument);
  EXPECT_EQ(code({4}, Plain({0, 0}, {0, 0})), Code::kInvalidArgument);
  EXPECT_EQ(code({4}, {{.offset = {0}, .extent = {4}}, {3, 2}}), Code::kInvalidArgument);
  EXPECT_EQ(code({4}, {{.offset = {0}, .extent = {0}}, {0, 1}}), Code::kInvalidArgument);
  EXPECT_EQ(code({}, Region()), Code::kInvalidArgument) << "none was given";
}

TEST(CheckRegion, RefusesABoxThatPassesTheEnd) {
  EXPECT_EQ(CheckedCode({4, 4}, Plain({0, 1}, {4, 4})), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesABoxBehindTheEnd) {
  EXPECT_EQ(CheckedCode({4}, Plain({4}, {1})), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAnOffsetThatWrapsAround) {
  // offset + extent is 2 in 64 bits.
  EXPECT_EQ(CheckedCode({4}, {{.offset = {kMax}, .extent = {3}}, {0, 1}}), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAnExtentThatWrapsAround) {
  EXPECT_EQ(CheckedCode({4}, {{.offset = {2}, .extent = {kMax}}, {0, 1}}), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAnEmptyRun) {
  EXPECT_EQ(CheckedCode({4}, {{.offset = {0}, .extent = {4}}, {2, 2}}), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAReversedRun) {
  EXPECT_EQ(CheckedCode({4}, {{.offset = {0}, .extent = {4}}, {3, 2}}), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesARunThatPassesTheBox) {
  EXPECT_EQ(CheckedCode({4, 4}, {{.offset = {0, 0}, .extent = {2, 4}}, {4, 9}}),
            Code::kInvalidArgument);
  EXPECT_EQ(CheckedCode({}, {{}, {0, 2}}), Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAnyRegionOfAnEmptyTensor) {
  EXPECT_EQ(CheckedCode({0}, Region::Whole({0})), Code::kInvalidArgument);
  EXPECT_EQ(CheckedCode({0, 4}, {{.offset = {0, 0}, .extent = {1, 4}}, {0, 4}}),
            Code::kInvalidArgument);
}

TEST(CheckRegion, RefusesAShapeWhoseElementCountDoesNotFit) {
  // The box has 2^64 elements, which is 0 in 64 bits; so no run could be checked.
  const Shape shape = {1ull << 32, 1ull << 32};
  EXPECT_EQ(CheckedCode(shape, {{.offset = {0, 0}, .extent = shape}, {0, 1}}),
            Code::kLimitExceeded);
  EXPECT_EQ(CheckedCode(shape, Plain({0, 0}, {1, 1})), Code::kLimitExceeded);
}

}  // namespace
}  // namespace sealpoint
