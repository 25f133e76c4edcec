// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/reading_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace sealpoint::internal {
namespace {

std::uint64_t PositionIn(const ReadingOrder& order, std::uint32_t blob, std::uint64_t offset) {
  return order.PlaceOf(blob, offset).position;
}

TEST(ReadingOrder, AllReadersAreEquallyFar) {
  const ReadingOrder order({{{1, 10, 15}, 0}, {{1, 15, 20}, 1}}, 2);
  EXPECT_EQ(order.end(), 10u);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(PositionIn(order, 1, 10 + i), 2 * i);
    EXPECT_EQ(PositionIn(order, 1, 15 + i), 2 * i + 1);
  }
  EXPECT_EQ(order.PlaceOf(1, 14).reader, 0);
  EXPECT_EQ(order.PlaceOf(1, 15).reader, 1);
}

TEST(ReadingOrder, ReadersBeginAtDifferentBlobs) {
  const ReadingOrder order({{{0, 0, 4}, 0}, {{0, 4, 8}, 1}, {{3, 0, 6}, 0}, {{3, 6, 12}, 1}}, 2);
  EXPECT_EQ(PositionIn(order, 0, 0), 0u);
  EXPECT_EQ(PositionIn(order, 3, 0), 8u);
  EXPECT_EQ(PositionIn(order, 3, 6), 1u);
  EXPECT_EQ(PositionIn(order, 0, 4), 13u);
}

TEST(ReadingOrder, NumbersNoTwoBytesAlike) {
  const std::vector<ReaderBytes> shared = {
      {{0, 0, 13}, 2}, {{0, 13, 14}, 0}, {{0, 20, 21}, 2}, {{4, 7, 30}, 0}, {{5, 0, 1}, 1}};
  const ReadingOrder order(shared, 3);
  std::vector<int> seen(order.end());
  for (const ReaderBytes& one : shared) {
    for (std::uint64_t at = one.bytes.begin; at < one.bytes.end; ++at) {
      const ReadingOrder::Place place = order.PlaceOf(one.bytes.blob, at);
      EXPECT_EQ(place.reader, one.reader);
      EXPECT_EQ(++seen.at(place.position), 1);
    }
  }
}

TEST(ReadingOrder, MayBeEmpty) { EXPECT_EQ(ReadingOrder({}, 4).end(), 0u); }

}  // namespace
}  // namespace sealpoint::internal
