// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/assign_readers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "sealpoint/bytes.h"

namespace sealpoint::internal::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::uint64_t> BytesByReader(const RequestedBytes& requested, int rank_count) {
  std::vector<std::uint64_t> bytes(static_cast<std::size_t>(rank_count));
  for (const ReaderBytes& reader_bytes : requested.shared) {
    bytes[static_cast<std::size_t>(reader_bytes.reader)] +=
        reader_bytes.bytes.end - reader_bytes.bytes.begin;
  }
  return bytes;
}

TEST(AssignReaders, WhatOneRankRequestsIsNotShared) {
  const RequestedBytes requested =
      AssignReaders({{{1, 0, 10}, 10, 0}, {{0, 0, 10}, 10, 1}, {{1, 10, 20}, 10, 1}}, 2);
  EXPECT_EQ(requested.size_bytes, 30u);
  EXPECT_THAT(requested.shared, IsEmpty());
}

TEST(AssignReaders, WhatTwoOrMoreRequestIs) {
  // The second rank's range holds the third one's, and ends behind the first one's.
  const RequestedBytes requested = AssignReaders(
      {{{0, 0, 50}, 100, 0}, {{0, 20, 90}, 100, 1}, {{0, 30, 40}, 100, 2}, {{0, 80, 100}, 100, 2}},
      3);
  EXPECT_EQ(requested.size_bytes, 100u);
  std::uint64_t at = 20;
  for (const ReaderBytes& reader_bytes : requested.shared) {
    if (at == 50) at = 80;
    EXPECT_EQ(reader_bytes.bytes.begin, at);
    at = reader_bytes.bytes.end;
  }
  EXPECT_EQ(at, 90u);
}

TEST(AssignReaders, DividesALongRangeBetweenChunks) {
  const RequestedBytes requested =
      AssignReaders({{{0, 100, 190}, 10, 0}, {{0, 100, 190}, 10, 1}, {{0, 100, 190}, 10, 3}}, 4);
  EXPECT_THAT(requested.shared,
              ElementsAre(ReaderBytes{{0, 100, 130}, 0}, ReaderBytes{{0, 130, 160}, 1},
                          ReaderBytes{{0, 160, 190}, 3}));
}

TEST(AssignReaders, ARankThatReadsMuchGetsNoMore) {
  // One of the two has blob 0 when blob 2 is dealt.
  const RequestedBytes requested = AssignReaders(
      {{{0, 0, 10}, 10, 0}, {{0, 0, 10}, 10, 1}, {{2, 0, 10}, 10, 0}, {{2, 0, 10}, 10, 1}}, 2);
  EXPECT_THAT(BytesByReader(requested, 2), ElementsAre(10, 10));
}

// Each rank deals blobs of its own and knows nothing of the others.
TEST(AssignReaders, DealersOfDifferentBlobsBeginWithDifferentRanks) {
  std::vector<int> readers;
  for (std::uint32_t blob = 0; blob < 4; ++blob) {
    const BlobBytes bytes{blob, 0, 10};
    const std::vector<RankBytes> all = {
        {bytes, 10, 0}, {bytes, 10, 1}, {bytes, 10, 2}, {bytes, 10, 3}};
    const RequestedBytes requested = AssignReaders(all, 4);
    ASSERT_EQ(requested.shared.size(), 1u);
    readers.push_back(requested.shared.front().reader);
  }
  std::sort(readers.begin(), readers.end());
  EXPECT_THAT(readers, ElementsAre(0, 1, 2, 3));
}

TEST(AssignReaders, PartsOfMuchAreLong) {
  const BlobBytes bytes{0, 0, 4 * kGiB};
  std::vector<RankBytes> all;
  for (int rank = 0; rank < 64; ++rank) all.push_back({bytes, kMiB, rank});
  const RequestedBytes requested = AssignReaders(all, 64);
  EXPECT_EQ(requested.shared.size(), 64u);
  const auto read = BytesByReader(requested, 64);
  EXPECT_LE(*std::max_element(read.begin(), read.end()), 72 * kMiB);
  EXPECT_GE(*std::min_element(read.begin(), read.end()), 56 * kMiB);
}

// Requests of chunks of one size; ranks want random ranges of them.
class AssignReadersProperty : public ::testing::TestWithParam<int> {
 protected:
  static constexpr std::uint64_t kChunk = 100;

  AssignReadersProperty() {
    for (int rank = 0; rank < rank_count_; ++rank) {
      for (std::uint32_t blob = 0; blob < 3; ++blob) {
        std::uint64_t at = Upto(40);
        for (int i = 0; i < 5; ++i) {
          const std::uint64_t begin = at + Upto(20);
          const std::uint64_t end = begin + 1 + Upto(60);
          requested_.push_back({{blob, begin * kChunk, end * kChunk}, kChunk, rank});
          at = end + 1;
        }
      }
    }
  }
  std::uint64_t Upto(std::uint64_t limit) { return random_() % limit; }
  bool Requests(int rank, std::uint32_t blob, std::uint64_t at) const {
    return std::any_of(requested_.begin(), requested_.end(), [&](const RankBytes& one) {
      return one.rank == rank && one.bytes.blob == blob && one.bytes.begin <= at &&
             at < one.bytes.end;
    });
  }

  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  const int rank_count_ = 1 + GetParam() % 9;
  std::vector<RankBytes> requested_;
};

TEST_P(AssignReadersProperty, EachSharedChunkHasOneReaderThatRequestsIt) {
  const RequestedBytes requested = AssignReaders(requested_, rank_count_);
  EXPECT_TRUE(std::is_sorted(requested.shared.begin(), requested.shared.end()));
  std::uint64_t size = 0;
  for (std::uint32_t blob = 0; blob < 3; ++blob) {
    for (std::uint64_t at = 0; at < 500 * kChunk; at += kChunk) {
      int requesters = 0;
      for (int rank = 0; rank < rank_count_; ++rank) requesters += Requests(rank, blob, at);
      if (requesters > 0) size += kChunk;
      int readers = 0;
      for (const ReaderBytes& reader_bytes : requested.shared) {
        if (reader_bytes.bytes.blob != blob || at < reader_bytes.bytes.begin ||
            at >= reader_bytes.bytes.end)
          continue;
        ++readers;
        EXPECT_TRUE(Requests(reader_bytes.reader, blob, at))
            << reader_bytes.reader << " " << blob << " " << at;
      }
      EXPECT_EQ(readers, requesters > 1 ? 1 : 0) << blob << " " << at;
    }
  }
  EXPECT_EQ(requested.size_bytes, size);
}

TEST_P(AssignReadersProperty, PartsOfOneReaderAreJoined) {
  const RequestedBytes requested = AssignReaders(requested_, rank_count_);
  for (std::size_t i = 1; i < requested.shared.size(); ++i) {
    const ReaderBytes& one = requested.shared[i - 1];
    const ReaderBytes& next = requested.shared[i];
    EXPECT_FALSE(one.reader == next.reader && one.bytes.blob == next.bytes.blob &&
                 one.bytes.end == next.bytes.begin);
  }
}

TEST_P(AssignReadersProperty, TheOrderOfTheRequestsDoesNotMatter) {
  const RequestedBytes once = AssignReaders(requested_, rank_count_);
  std::shuffle(requested_.begin(), requested_.end(), random_);
  EXPECT_EQ(AssignReaders(requested_, rank_count_).shared, once.shared);
}

// Every rank requests much of what is shared, so that each can have its part.
TEST_P(AssignReadersProperty, ReadersAreBalanced) {
  if (rank_count_ == 1) return;
  for (int rank = 0; rank < rank_count_; ++rank) {
    requested_.push_back({{7, 0, 300 * kChunk}, kChunk, rank});
  }
  const auto read = BytesByReader(AssignReaders(requested_, rank_count_), rank_count_);
  const std::uint64_t greatest = *std::max_element(read.begin(), read.end());
  const std::uint64_t least = *std::min_element(read.begin(), read.end());
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : read) sum += bytes;
  // A part is a quarter of a rank's, rounded to chunks.
  const std::uint64_t part = sum / static_cast<std::uint64_t>(rank_count_) / 4 + kChunk;
  EXPECT_LE(greatest - least, 2 * part) << ::testing::PrintToString(read);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AssignReadersProperty, ::testing::Range(0, 45));

}  // namespace
}  // namespace sealpoint::internal::collective
