// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/reading_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace sealpoint::internal::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// One range of chunks of 10 stored and 20 raw bytes.
class ReadingBatchTest : public ::testing::Test {
 protected:
  explicit ReadingBatchTest(std::size_t count = 8) {
    for (std::size_t i = 0; i < count; ++i) {
      plan_.chunks.push_back({.offset = 100 + 10 * i, .stored_size = 10, .raw_size = 20});
    }
    ranges_.push_back({.offset = 100, .size = 10 * count, .chunk_count = count});
  }
  void Add(std::size_t chunk, int requester_count) {
    to_read_.push_back({.chunk = chunk});
    for (int rank = 0; rank < requester_count; ++rank) {
      to_read_.back().requesters.push_back({rank, transfer::ChunkParts(20)});
    }
  }
  // For each batch, its end and the chunks that are read in it.
  using Row = std::array<std::size_t, 4>;  // chunk, requester, ranges, chunks read
  std::vector<Row> Divide(const BatchLimits& limits) const {
    std::vector<Row> rows;
    SendingPlace begin;
    for (const ReadingBatch& batch : DivideIntoBatches(plan_, ranges_, to_read_, limits)) {
      EXPECT_EQ(batch.begin, begin);
      begin = batch.end;
      std::size_t chunks = 0;
      for (const transfer::PlanRange& range : batch.ranges) {
        EXPECT_EQ(range.offset, plan_.chunks[range.first_chunk].offset);
        EXPECT_EQ(range.size, 10 * range.chunk_count);
        chunks += range.chunk_count;
      }
      rows.push_back({batch.end.chunk, batch.end.requester, batch.ranges.size(), chunks});
    }
    return rows;
  }

  load::ReadPlanData plan_;
  std::vector<transfer::PlanRange> ranges_;
  std::vector<ChunkToRead> to_read_;
};

TEST_F(ReadingBatchTest, NothingIsNoBatch) { EXPECT_THAT(Divide({100, 100}), IsEmpty()); }

TEST_F(ReadingBatchTest, HoldsAsMuchAsTheLimitAllows) {
  for (std::size_t i = 0; i < 5; ++i) Add(i, 1);
  EXPECT_THAT(Divide({40, 100}), ElementsAre(Row{2, 0, 1, 2}, Row{4, 0, 1, 2}, Row{5, 0, 1, 1}));
  EXPECT_THAT(Divide({39, 100}).size(), 5u);
  EXPECT_THAT(Divide({1, 100}).size(), 5u);
  EXPECT_THAT(Divide({100, 100}), ElementsAre(Row{5, 0, 1, 5}));
}

TEST_F(ReadingBatchTest, WhatIsHeldForThisRankCounts) {
  for (std::size_t i = 0; i < 3; ++i) Add(i, 1);
  EXPECT_THAT(Divide({.size_max_bytes = 60, .range_size_max_bytes = 100, .holds_chunks = true}),
              ElementsAre(Row{1, 0, 1, 1}, Row{2, 0, 1, 1}, Row{3, 0, 1, 1}));
}

TEST_F(ReadingBatchTest, OfAChunkThatManyRequestSeveralBatchesSend) {
  Add(0, 1);
  Add(1, 5);
  Add(2, 1);
  EXPECT_THAT(Divide({40, 100}),
              ElementsAre(Row{1, 0, 1, 1}, Row{1, 2, 1, 1}, Row{1, 4, 0, 0}, Row{3, 0, 1, 1}));
}

TEST_F(ReadingBatchTest, RangesHoldChunksThatLieBackToBack) {
  for (const std::size_t chunk : {0u, 1u, 3u, 4u, 5u, 6u, 7u}) Add(chunk, 1);
  EXPECT_THAT(Divide({1000, 1000}), ElementsAre(Row{7, 0, 2, 7}));
  EXPECT_THAT(Divide({1000, 20}), ElementsAre(Row{7, 0, 4, 7}));
  for (std::size_t i = 3; i < to_read_.size(); ++i) to_read_[i].range = 1;
  ranges_.push_back(ranges_.front());
  EXPECT_THAT(Divide({1000, 1000}), ElementsAre(Row{7, 0, 3, 7}));
}

}  // namespace
}  // namespace sealpoint::internal::collective
