// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/reading_order.h"

#include <gmock/gmock.h>

namespace sealpoint::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(UnionOf, JoinsWhatOverlapsNestsOrTouches) {
  EXPECT_THAT(UnionOf({{0, 5, 9}, {0, 0, 3}, {0, 3, 4}, {0, 6, 7}, {0, 8, 12}}),
              ElementsAre(BlobBytes{0, 0, 4}, BlobBytes{0, 5, 12}));
}

TEST(UnionOf, KeepsBlobsApartAndDropsEmptyRanges) {
  EXPECT_THAT(UnionOf({{1, 0, 4}, {0, 2, 4}, {1, 9, 9}}),
              ElementsAre(BlobBytes{0, 2, 4}, BlobBytes{1, 0, 4}));
  EXPECT_THAT(UnionOf({}), IsEmpty());
}

TEST(ReadingOrder, GoesRoundTheBlobsPieceByPiece) {
  // Pieces of 4: blob 1 has 4 + 4 + 1 bytes in two ranges, blob 3 has 4 + 2.
  const ReadingOrder order({{1, 10, 15}, {1, 20, 24}, {3, 0, 6}}, 4);
  EXPECT_EQ(order.size_bytes(), 15u);
  EXPECT_EQ(order.PositionOf(1, 10), 0u);
  EXPECT_EQ(order.PositionOf(3, 0), 4u);
  EXPECT_EQ(order.PositionOf(1, 14), 8u);
  EXPECT_EQ(order.PositionOf(1, 20), 9u);
  EXPECT_EQ(order.PositionOf(3, 4), 12u);
  EXPECT_EQ(order.PositionOf(1, 23), 14u);
}

TEST(ReadingOrder, NumbersEachWantedByteOnce) {
  const std::vector<BlobBytes> wanted = {{0, 0, 13}, {0, 20, 21}, {4, 7, 30}, {5, 0, 1}};
  for (const std::uint64_t stripe : {1u, 2u, 5u, 100u}) {
    const ReadingOrder order(wanted, stripe);
    std::vector<int> seen(order.size_bytes());
    for (const BlobBytes& range : wanted) {
      for (std::uint64_t at = range.begin; at < range.end; ++at) {
        ++seen.at(order.PositionOf(range.blob, at));
      }
    }
    EXPECT_THAT(seen, ::testing::Each(1));
  }
}

TEST(ReadingOrder, MayBeEmpty) { EXPECT_EQ(ReadingOrder({}, 4).size_bytes(), 0u); }

TEST(ReadingWindow, DealsItsBytesInEqualParts) {
  const ReadingWindow window{.begin = 100, .end = 110};
  std::vector<int> readers;
  for (std::uint64_t at = window.begin; at < window.end; ++at) {
    readers.push_back(window.ReaderOf(at, 4));
  }
  EXPECT_THAT(readers, ElementsAre(0, 0, 0, 1, 1, 1, 2, 2, 2, 3));
}

TEST(ReadingWindow, MayBeSmallerThanTheNumberOfRanks) {
  const ReadingWindow window{.begin = 5, .end = 7};
  EXPECT_EQ(window.ReaderOf(5, 8), 0);
  EXPECT_EQ(window.ReaderOf(6, 8), 1);
}

}  // namespace
}  // namespace sealpoint::internal
