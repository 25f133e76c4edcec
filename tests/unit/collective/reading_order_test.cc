// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/reading_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sealpoint/bytes.h"

namespace sealpoint::internal::collective {
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
  for (const ReaderBytes& reader_bytes : shared) {
    for (std::uint64_t at = reader_bytes.bytes.begin; at < reader_bytes.bytes.end; ++at) {
      const ReadingOrder::Place place = order.PlaceOf(reader_bytes.bytes.blob, at);
      EXPECT_EQ(place.reader, reader_bytes.reader);
      EXPECT_EQ(++seen.at(place.position), 1);
    }
  }
}

// Four readers of 32 MiB each, in ranges of 8 MiB.
TEST(ReadingOrder, EachRankReadsItsOwnPartOfAWindowFirstAndThenWhatOthersHaveRead) {
  std::vector<ReaderBytes> shared;
  std::vector<transfer::PlanRange> ranges;
  for (int reader = 0; reader < 4; ++reader) {
    const auto begin = static_cast<std::uint64_t>(reader) * 32 * kMiB;
    shared.push_back({{0, begin, begin + 32 * kMiB}, reader});
    for (std::uint64_t i = 0; i < 4; ++i) {
      ranges.push_back({.blob = 0, .offset = begin + i * 8 * kMiB, .size = 8 * kMiB});
    }
  }
  const ReadingOrder order(shared, 4);
  for (int rank = 0; rank < 4; ++rank) {
    std::vector<transfer::PlanRange> spread = ranges;
    order.SpreadReaders(spread, rank);
    std::vector<std::uint64_t> begins;
    for (const transfer::PlanRange& range : spread) {
      begins.push_back(range.offset / (8 * kMiB));
      EXPECT_TRUE(range.has_other_readers);
    }
    std::vector<std::uint64_t> expected;
    for (std::uint64_t window = 0; window < 2; ++window) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        const std::uint64_t first = (static_cast<std::uint64_t>(rank) + i) % 4 * 4 + 2 * window;
        expected.insert(expected.end(), {first, first + 1});
      }
    }
    EXPECT_EQ(begins, expected) << rank;
  }
}

TEST(ReadingOrder, MayBeEmpty) { EXPECT_EQ(ReadingOrder({}, 4).end(), 0u); }

}  // namespace
}  // namespace sealpoint::internal::collective
