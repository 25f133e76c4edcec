// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/view_checks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>

namespace sealpoint::internal::layout {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();

// The bytes touched by so many elements in one dimension.
std::optional<TouchedBytes> Touched(std::uint64_t count, std::int64_t stride, std::size_t origin,
                                    std::uint32_t element_size = 1) {
  return TouchedBytesOf(Region::Whole({count}), {stride}, origin, element_size);
}

TEST(TouchedBytes, ReachFromTheLowestToTheHighestElement) {
  EXPECT_EQ(Touched(3, 10, 100, 4), (TouchedBytes{.begin = 100, .end = 124}));
  EXPECT_EQ(Touched(3, -10, 100, 4), (TouchedBytes{.begin = 80, .end = 104}));
}

TEST(TouchedBytes, HaveBoundsThatFit63Bits) {
  EXPECT_TRUE(Touched(2, kMax - 1, 0));
  EXPECT_FALSE(Touched(2, kMax - 1, 0, 2)) << "the end of the last element";
  EXPECT_FALSE(Touched(2, kMax, 1)) << "its begin";
  EXPECT_FALSE(Touched(3, kMax, 0)) << "its distance";
  EXPECT_TRUE(Touched(2, kMin, 0));
  EXPECT_FALSE(Touched(3, kMin, 0)) << "below the first";
  EXPECT_FALSE(Touched(1, 1, std::size_t{1} << 63)) << "the origin";
}

}  // namespace
}  // namespace sealpoint::internal::layout
