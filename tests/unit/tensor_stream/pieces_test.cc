// SPDX-License-Identifier: Apache-2.0
#include "lib/tensor_stream/pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sealpoint::internal::tensor_stream {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::uint64_t> SizesOf(std::span<const Piece> pieces) {
  std::vector<std::uint64_t> sizes;
  for (const Piece& piece : pieces) sizes.push_back(piece.raw_bytes);
  return sizes;
}

std::vector<Piece> RunsOf(std::uint64_t size_bytes, std::uint64_t chunk_size,
                          std::uint64_t shard_count) {
  const TensorInfo tensor{.element_size = 4,
                          .shape = {size_bytes / 4},
                          .chunk_size_bytes = chunk_size,
                          .raw_bytes = size_bytes,
                          .shard_count = shard_count};
  std::vector<Piece> pieces;
  AppendRuns(7, tensor, Region::Whole(tensor.shape), 2, pieces);
  return pieces;
}

Piece PieceOf(std::uint64_t size_bytes) {
  return {.raw_bytes = size_bytes, .held_bytes = size_bytes, .plane_bytes = size_bytes};
}

TEST(Pieces, OfARegionFollowOneAnother) {
  const std::vector<Piece> pieces = RunsOf(20 * kMiB + 4, kMiB, 1);
  EXPECT_THAT(SizesOf(pieces), ElementsAre(8 * kMiB, 8 * kMiB, 4 * kMiB + 4));
  std::uint64_t at = 0;
  for (const Piece& piece : pieces) {
    EXPECT_EQ(piece.tensor, 7U);
    EXPECT_EQ(piece.region.run.begin, at);
    at = piece.region.run.end;
  }
  EXPECT_EQ(at, (20 * kMiB + 4) / 4);
  EXPECT_EQ(RawBytes(pieces), 20 * kMiB + 4);
}

TEST(Pieces, HoldAChunkOfEachShardBesideOneAnother) {
  EXPECT_EQ(RunsOf(kGiB, 4 * kMiB, 5).front().raw_bytes, 20 * kMiB);
  EXPECT_EQ(RunsOf(kGiB, 4 * kMiB, 500).front().raw_bytes, 64 * kMiB);
  EXPECT_EQ(RunsOf(kGiB, 128 * kMiB, 2).front().raw_bytes, 128 * kMiB);
}

TEST(Pieces, HavePlanesThatBeginAtPagesIfTheyAreLarge) {
  EXPECT_EQ(RunsOf(kMiB + 4, kMiB, 1).front().plane_bytes, kMiB + 4096);
  const Piece small = RunsOf(68, kMiB, 1).front();
  EXPECT_EQ(small.plane_bytes, 128U);
  EXPECT_EQ(small.memory_bytes(), 256U);
}

TEST(Pieces, AreDividedByTheirSizes) {
  std::vector<Piece> pieces;
  for (const std::uint64_t size : {6u, 1u, 1u, 1u, 3u}) pieces.push_back(PieceOf(size));
  const std::vector<Lane> lanes = Divide(pieces, 3);
  ASSERT_EQ(lanes.size(), 3U);
  EXPECT_THAT(SizesOf(lanes[0]), ElementsAre(6));
  EXPECT_THAT(SizesOf(lanes[1]), ElementsAre(1, 1, 1));
  EXPECT_THAT(SizesOf(lanes[2]), ElementsAre(3));
  EXPECT_THAT(SizesOf(Divide(pieces, 1).front()), ElementsAre(6, 1, 1, 1, 3));
}

TEST(Pieces, FitTogetherUpToTheMemoryAndAThousandOfThem) {
  const std::vector<Piece> pieces(2000, PieceOf(10));
  EXPECT_EQ(CountThatFit(pieces, 39), 3U);
  EXPECT_EQ(CountThatFit(pieces, 40), 4U);
  EXPECT_EQ(CountThatFit(pieces, 9), 1U);
  EXPECT_EQ(CountThatFit(pieces, kMiB), 1024U);
  EXPECT_EQ(CountThatFit({}, kMiB), 0U);
}

}  // namespace
}  // namespace sealpoint::internal::tensor_stream
