// SPDX-License-Identifier: Apache-2.0
#include "lib/base/checked_math.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace sealpoint::internal {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();

TEST(CheckedAdd, GivesSumsThatFit) {
  EXPECT_EQ(CheckedAdd<std::uint64_t>(2, 3), 5u);
  EXPECT_EQ(CheckedAdd<std::uint64_t>(kMax - 1, 1), kMax);
}

TEST(CheckedAdd, RefusesTheFirstSumThatDoesNotFit) {
  EXPECT_EQ(CheckedAdd<std::uint64_t>(kMax, 1), std::nullopt);
  EXPECT_EQ(CheckedAdd<std::uint64_t>(kMax, kMax), std::nullopt);
}

TEST(CheckedAdd, ChecksByTheTypeAndNotByThePromotedInt) {
  EXPECT_EQ(CheckedAdd<std::uint8_t>(200, 100), std::nullopt);
  EXPECT_EQ(CheckedAdd<std::uint32_t>(0xffffffffu, 1), std::nullopt);
}

TEST(CheckedMul, GivesProductsThatFit) {
  EXPECT_EQ(CheckedMul<std::uint64_t>(1ull << 32, 1ull << 31), 1ull << 63);
  EXPECT_EQ(CheckedMul<std::uint64_t>(kMax, 1), kMax);
  EXPECT_EQ(CheckedMul<std::uint64_t>(kMax, 0), 0u);
}

TEST(CheckedMul, RefusesTheFirstProductThatDoesNotFit) {
  EXPECT_EQ(CheckedMul<std::uint64_t>(1ull << 32, 1ull << 32), std::nullopt);
  EXPECT_EQ(CheckedMul<std::uint64_t>(kMax, 2), std::nullopt);
}

TEST(MulUpTo, GivesProductsUpToTheGreatest) {
  EXPECT_EQ(MulUpTo(3, 5, 15), 15u);
  EXPECT_EQ(MulUpTo(3, 5, 17), 15u);
  EXPECT_EQ(MulUpTo(3, 0, 0), 0u);
  EXPECT_EQ(MulUpTo(1ull << 32, 1ull << 31, kMax), 1ull << 63);
}

TEST(MulUpTo, RefusesTheFirstProductAbove) {
  EXPECT_EQ(MulUpTo(3, 5, 14), std::nullopt);
  EXPECT_EQ(MulUpTo(1, 1, 0), std::nullopt);
  EXPECT_EQ(MulUpTo(1ull << 32, 1ull << 32, kMax), std::nullopt);
}

TEST(RangeFits, TakesRangesThatEndAtTheSize) {
  EXPECT_TRUE(RangeFits(0, 10, 10));
  EXPECT_TRUE(RangeFits(10, 0, 10));
  EXPECT_TRUE(RangeFits(kMax - 1, 1, kMax));
}

TEST(RangeFits, RefusesAnOffsetBehindTheEnd) { EXPECT_FALSE(RangeFits(11, 0, 10)); }

TEST(RangeFits, RefusesALengthThatPassesTheEnd) { EXPECT_FALSE(RangeFits(4, 7, 10)); }

TEST(RangeFits, RefusesALengthThatWrapsAround) {
  EXPECT_FALSE(RangeFits(4, kMax - 2, 10));
  EXPECT_FALSE(RangeFits(kMax, kMax, 10));
}

TEST(DivideRoundUp, RoundsUpAndDoesNotOverflow) {
  EXPECT_EQ(DivideRoundUp(0, 4), 0u);
  EXPECT_EQ(DivideRoundUp(8, 4), 2u);
  EXPECT_EQ(DivideRoundUp(9, 4), 3u);
  EXPECT_EQ(DivideRoundUp(kMax, 2), 1ull << 63);
}

TEST(AlignUp, GivesTheNextMultiple) {
  EXPECT_EQ(AlignUp(0, 64), 0u);
  EXPECT_EQ(AlignUp(1, 64), 64u);
  EXPECT_EQ(AlignUp(64, 64), 64u);
  EXPECT_EQ(AlignUp((1ull << 32) + 1, 4096), (1ull << 32) + 4096);
}

}  // namespace
}  // namespace sealpoint::internal
