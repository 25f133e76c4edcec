// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// Elements of 16 bytes; 1 MiB chunks.
constexpr std::uint64_t kElements = 64 * 1024;
constexpr std::uint64_t kChunkBytes = 1 * kMiB;

// 20 chunks in one shard.
MiniSpec TwentyChunks() {
  MiniSpec spec;
  const Shape shape = {20 * kElements};
  MiniTensor tensor{
      .name = "w", .dtype = DType::kComplex128, .shape = shape, .chunk_size = kChunkBytes};
  tensor.shards.push_back({.region = Region::Whole(shape), .bytes = Bytes(20 * kChunkBytes)});
  spec.tensors.push_back(std::move(tensor));
  return spec;
}

Region Part(std::uint64_t first_chunk, std::uint64_t count) {
  return Region::Of({{first_chunk * kElements}, {count * kElements}});
}

class PlanTest : public LoadFixture {
 protected:
  PlanSummary Summary(const std::vector<Region>& regions) {
    out_.resize(regions.size() * 20 * kChunkBytes);
    ReadRequest request;
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const std::size_t size = regions[i].element_count() * 16;
      request.Add("w", regions[i],
                  MutableMemoryView::Host(std::span(out_).subspan(i * 20 * kChunkBytes, size)));
    }
    return checkpoint_->Plan(request).value().Summary();
  }
  Bytes out_;
};

TEST_F(PlanTest, AdjacentChunksAreReadTogetherUpToEightMebibytes) {
  Open(TwentyChunks());
  EXPECT_EQ(Summary({Part(0, 20)}).requests, 3u);
  EXPECT_EQ(Summary({Part(0, 8)}).requests, 1u);
  EXPECT_EQ(Summary({Part(3, 9)}).requests, 2u);
}

TEST_F(PlanTest, ChunksWithAGapAreNotReadTogether) {
  Open(TwentyChunks());
  const PlanSummary summary = Summary({Part(0, 1), Part(2, 2)});
  EXPECT_EQ(summary.requests, 2u);
  EXPECT_EQ(summary.bytes_read, 3 * kChunkBytes);
}

TEST_F(PlanTest, ChunksForSeparateMemoryAreReadApartWhereEachGoesInPlace) {
  Open(TwentyChunks());
  EXPECT_EQ(Summary({Part(0, 2), Part(2, 2)}).requests, 2u);
  // Half a chunk cannot be read in place, so that nothing is gained by a read of its own.
  const Region half = Region::Of({{2 * kElements}, {kElements / 2}});
  const Region next = Region::Of({{3 * kElements}, {kElements / 2}});
  EXPECT_EQ(Summary({half, next}).requests, 1u);
  // A chunk that can be is not drawn into a range that is copied.
  EXPECT_EQ(Summary({half, Part(3, 1)}).requests, 2u);
}

TEST_F(PlanTest, ChunkThatTwoItemsWantIsReadOnce) {
  Open(TwentyChunks());
  const PlanSummary summary = Summary({Part(4, 2), Part(5, 2)});
  EXPECT_EQ(summary.chunks, 3u);
  EXPECT_EQ(summary.bytes_read, 3 * kChunkBytes);
  EXPECT_EQ(summary.bytes_requested, 4 * kChunkBytes);
  EXPECT_DOUBLE_EQ(summary.amplification, 0.75);
}

TEST_F(PlanTest, PartOfAChunkAmplifies) {
  Open(TwentyChunks());
  const PlanSummary summary = Summary({Region::Of({{10}, {kElements / 4}})});
  EXPECT_EQ(summary.bytes_requested, kChunkBytes / 4);
  EXPECT_EQ(summary.bytes_read, kChunkBytes);
  EXPECT_DOUBLE_EQ(summary.amplification, 4.0);
  EXPECT_EQ(summary.files, 1u);
  EXPECT_EQ(summary.table_bytes_read, 16u + 20 * 64);
}

// Two shards of chunks of 4096 bytes, in these blobs; the table bytes of one chunk of each.
class TwoShards : public LoadFixture {
 protected:
  std::uint64_t TableBytes(std::uint64_t first_chunks, std::uint64_t second_chunks, int second_blob,
                           std::uint64_t chunk_of_first, std::uint64_t chunk_of_second) {
    constexpr std::uint64_t kChunk = 4096;
    const std::uint64_t border = first_chunks * kChunk;
    const std::uint64_t size = border + second_chunks * kChunk;
    const std::vector<Region> shards = {Region::Of({{0}, {border}}),
                                        Region::Of({{border}, {size - border}})};
    Open({.tensors = {
              CutTensor("w", DType::kUInt8, {size}, Bytes(size), shards, {0, second_blob})}});
    Bytes out(2 * kChunk);
    ReadRequest request;
    request.Add("w", Box{{chunk_of_first * kChunk}, {kChunk}},
                MutableMemoryView::Host(std::span(out).first(kChunk)));
    request.Add("w", Box{{border + chunk_of_second * kChunk}, {kChunk}},
                MutableMemoryView::Host(std::span(out).subspan(kChunk)));
    return checkpoint_->Plan(request).value().Summary().table_bytes_read;
  }
};

// The record before the wanted one would be in a group that nobody wants.
TEST_F(TwoShards, RecordsOfAnotherBlobAreNoPredecessors) {
  EXPECT_EQ(TableBytes(65, 65, 1, 63, 64), (2u * 16 + 64 * 64) + (2u * 16 + 64));
}

TEST_F(TwoShards, RecordsFurtherBackAreNoPredecessors) {
  EXPECT_EQ(TableBytes(64, 65, 0, 0, 64), 3u * 16 + 64 * 64 + 64);
}

TEST_F(PlanTest, SmallBudgetMakesSmallerRanges) {
  Open(TwentyChunks());
  Reopen({.memory_budget_bytes = 8 * kMiB});
  EXPECT_EQ(Summary({Part(0, 20)}).requests, 10u);
  Reopen({.memory_budget_bytes = 64 * kKiB});  // one chunk per read at least
  EXPECT_EQ(Summary({Part(0, 20)}).requests, 20u);
}

TEST_F(PlanTest, PlanningReadsTablesAndNoPayload) {
  Open(TwentyChunks());
  const PlanSummary summary = Summary({Part(0, 20)});
  std::uint64_t bytes = 0;
  for (const ReadCall& call : storage_->log().reads) {
    EXPECT_GE(call.offset, container_.blobs.at(0).sections.table);
    bytes += call.size;
  }
  EXPECT_EQ(bytes, summary.table_bytes_read);
}

TEST_F(PlanTest, ExplainsItselfPerFile) {
  Open(TwentyChunks());
  out_.resize(20 * kChunkBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(out_));
  const std::string text = checkpoint_->Plan(request).value().Explain();
  EXPECT_THAT(text, HasSubstr("21.0 MB requested, 21.0 MB read (x 1.000) in 3 ranges of 1 file"));
  EXPECT_THAT(text, HasSubstr(container_.blobs.at(0).name + ": 3 ranges, 20 chunks, 21.0 MB: w"));
}

// Destinations and regions.

class DestinationTest : public LoadFixture {
 protected:
  void SetUp() override {
    MiniSpec spec;
    spec.tensors.push_back(
        CutTensor("w", DType::kF32, {4, 4}, NoiseBytes(1, 64), {Region::Whole({4, 4})}));
    Open(spec);
  }
  Code CodeOf(const Region& region, const MutableMemoryView& view) {
    ReadRequest request;
    request.Add("w", region, view);
    return checkpoint_->Plan(request).status().code();
  }
  MutableMemoryView Dense(std::size_t size) {
    return MutableMemoryView::Host(std::span(memory_bytes_).first(size));
  }
  MutableMemoryView Strided(std::vector<std::int64_t> strides, std::size_t origin = 0) {
    return MutableMemoryView::Host(memory_bytes_, std::move(strides), origin);
  }
  std::array<std::byte, 256> memory_bytes_{};
};

TEST_F(DestinationTest, NullIsRefused) {
  EXPECT_EQ(CodeOf(Region::Whole({4, 4}), {}), Code::kInvalidArgument);
}

TEST_F(DestinationTest, StridesOfAnotherDimensionCountAreRefused) {
  EXPECT_EQ(CodeOf(Region::Whole({4, 4}), Strided({4})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Region::Whole({4, 4}), Strided({16, 4})), Code::kOk);
}

TEST_F(DestinationTest, StridesOfARunAreRefused) {
  const Region run{{{0, 0}, {4, 4}}, {1, 9}};
  EXPECT_EQ(CodeOf(run, Strided({16, 4})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(run, Dense(8 * 4)), Code::kOk);
}

TEST_F(DestinationTest, StridesThatMakeElementsOverlapAreRefused) {
  EXPECT_EQ(CodeOf(Region::Whole({4, 4}), Strided({16, 0})), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Region::Whole({4, 4}), Strided({16, -3}, 9)), Code::kInvalidArgument);
  // A single element overlaps no other.
  EXPECT_EQ(CodeOf(Region::Of({{0, 0}, {4, 1}}), Strided({4, 0})), Code::kOk);
}

// All strides of three rows of four: what is accepted shares no byte, and what steps over all that
// lies below it is accepted.
TEST_F(DestinationTest, StridesPassIfAndOnlyIfTheyAreNested) {
  constexpr std::int64_t kStrideMax = 40;
  int shared = 0;
  const auto touches_apart = [](std::int64_t row, std::int64_t element) {
    std::set<std::int64_t> touched;
    for (std::int64_t i = 0; i < 12; ++i) {
      for (std::int64_t byte = 0; byte < 4; ++byte) {
        touched.insert(i / 4 * row + i % 4 * element + byte);
      }
    }
    return touched.size() == 48;
  };
  for (std::int64_t row = -kStrideMax; row <= kStrideMax; ++row) {
    for (std::int64_t element = -kStrideMax; element <= kStrideMax; ++element) {
      const std::int64_t origin = (row < 0 ? -2 * row : 0) + (element < 0 ? -3 * element : 0);
      const Code code = CodeOf(Region::Of({{0, 0}, {3, 4}}),
                               Strided({row, element}, static_cast<std::size_t>(origin)));
      const std::int64_t by_row = std::abs(row);
      const std::int64_t by_element = std::abs(element);
      const bool is_nested = (by_element >= 4 && by_row >= 3 * by_element + 4) ||
                             (by_row >= 4 && by_element >= 2 * by_row + 4);
      EXPECT_EQ(code, is_nested ? Code::kOk : Code::kInvalidArgument) << row << ", " << element;
      if (code == Code::kOk) EXPECT_TRUE(touches_apart(row, element)) << row << ", " << element;
      if (!touches_apart(row, element)) ++shared;
    }
  }
  EXPECT_GT(shared, 1000);
}

TEST_F(DestinationTest, RegionOutsideTheShapeIsRefused) {
  EXPECT_EQ(CodeOf(Region::Of({{0, 1}, {4, 4}}), Dense(4 * 4 * 4)), Code::kInvalidArgument);
  EXPECT_EQ(CodeOf(Region::Of({{0}, {4}}), Dense(4 * 4 * 4)), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sealpoint::testing
