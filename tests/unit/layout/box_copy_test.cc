// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/box_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <vector>

namespace sealpoint::internal::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Bytes Counting(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i + 1);
  return bytes;
}

std::vector<int> Values(const Bytes& bytes) {
  std::vector<int> values;
  for (const std::byte byte : bytes) values.push_back(std::to_integer<int>(byte));
  return values;
}

TEST(DenseStrides, AreRowMajorInBytes) {
  EXPECT_THAT(DenseStridesBytes({}, 4), IsEmpty());
  EXPECT_THAT(DenseStridesBytes({2, 3, 5}, 4), ElementsAre(60, 20, 4));
  EXPECT_THAT(DenseStridesBytes({2, 1 << 16, 1 << 16}, 8),
              ElementsAre(std::int64_t{1} << 35, 1 << 19, 8));
}

TEST(NormalizeCopy, MakesADenseBoxOnePiece) {
  StridedCopy copy{.extent = {2, 3, 5},
                   .source_stride_bytes = {60, 20, 4},
                   .target_stride_bytes = {60, 20, 4},
                   .element_size = 4};
  copy.Normalize();
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_EQ(copy.element_size, 120u);
  EXPECT_EQ(copy.byte_count(), 120u);
}

TEST(NormalizeCopy, MakesRowsOfABoxInAWiderTensorOnePieceEach) {
  StridedCopy copy{
      .extent = {4, 2, 8}, .source_stride_bytes = {16, 8, 1}, .target_stride_bytes = {100, 8, 1}};
  copy.Normalize();
  EXPECT_THAT(copy.extent, ElementsAre(4));
  EXPECT_THAT(copy.source_stride_bytes, ElementsAre(16));
  EXPECT_THAT(copy.target_stride_bytes, ElementsAre(100));
  EXPECT_EQ(copy.element_size, 16u);
}

TEST(NormalizeCopy, DropsDimensionsOfExtentOneWhateverTheirStrides) {
  StridedCopy copy{.extent = {1, 3, 1},
                   .source_stride_bytes = {-7, 4, 1000},
                   .target_stride_bytes = {99, 8, 0},
                   .element_size = 4};
  copy.Normalize();
  EXPECT_THAT(copy.extent, ElementsAre(3));
  EXPECT_THAT(copy.source_stride_bytes, ElementsAre(4));
  EXPECT_THAT(copy.target_stride_bytes, ElementsAre(8));
}

TEST(NormalizeCopy, DoesNotMergeWhereOneSideBreaks) {
  StridedCopy copy{.extent = {3, 4},
                   .source_stride_bytes = {8, 2},
                   .target_stride_bytes = {9, 2},
                   .element_size = 2};
  copy.Normalize();
  EXPECT_THAT(copy.extent, ElementsAre(3));
  EXPECT_EQ(copy.element_size, 8u);
}

TEST(NormalizeCopy, MergesNegativeStrides) {
  StridedCopy copy{.extent = {3, 4},
                   .source_stride_bytes = {-8, -2},
                   .target_stride_bytes = {8, 2},
                   .element_size = 2};
  copy.Normalize();
  EXPECT_THAT(copy.extent, ElementsAre(12));
  EXPECT_THAT(copy.source_stride_bytes, ElementsAre(-2));
  EXPECT_EQ(copy.element_size, 2u);
}

TEST(NormalizeCopy, MergesABroadcastOnlyWithItself) {
  StridedCopy copy{
      .extent = {3, 4, 5}, .source_stride_bytes = {0, 0, 1}, .target_stride_bytes = {20, 5, 1}};
  copy.Normalize();
  EXPECT_THAT(copy.extent, ElementsAre(12));
  EXPECT_THAT(copy.source_stride_bytes, ElementsAre(0));
  EXPECT_THAT(copy.target_stride_bytes, ElementsAre(5));
  EXPECT_EQ(copy.element_size, 5u);
}

TEST(NormalizeCopy, DoesNotMergeStridesWhoseProductWrapsAround) {
  // 2^62 * 4 is 0 in 64 bits, the outer stride.
  const std::int64_t huge = std::int64_t{1} << 62;
  StridedCopy copy{
      .extent = {2, 4}, .source_stride_bytes = {0, huge}, .target_stride_bytes = {0, huge}};
  copy.Normalize();
  EXPECT_THAT(copy.extent, ElementsAre(2, 4));
}

// An empty dimension, outside and inside.
const Shape kNothing[] = {{0, 3}, {3, 0}, {0, 0}};

StridedCopy CopyOf(const Shape& extent) {
  return {.extent = extent, .source_stride_bytes = {1, 1}, .target_stride_bytes = {1, 1}};
}

TEST(NormalizeCopy, KeepsACopyOfNothingEmpty) {
  for (const Shape& extent : kNothing) {
    StridedCopy copy = CopyOf(extent);
    copy.Normalize();
    EXPECT_EQ(copy.byte_count(), 0u);
  }
}

TEST(RunStridedCopy, CopiesNothingFromNoMemory) {
  for (const Shape& extent : kNothing) RunStridedCopy(CopyOf(extent), nullptr, nullptr);
}

TEST(RunStridedCopy, CopiesOnePieceAtItsOffsets) {
  const Bytes source = Counting(6);
  Bytes target(6);
  RunStridedCopy({.element_size = 3, .source_offset_bytes = 2, .target_offset_bytes = 1},
                 source.data(), target.data());
  EXPECT_THAT(Values(target), ElementsAre(0, 3, 4, 5, 0, 0));
}

TEST(RunStridedCopy, Transposes) {
  const Bytes source = Counting(6);
  Bytes target(6);
  RunStridedCopy({.extent = {2, 3}, .source_stride_bytes = {1, 2}, .target_stride_bytes = {3, 1}},
                 source.data(), target.data());
  EXPECT_THAT(Values(target), ElementsAre(1, 3, 5, 2, 4, 6));
}

TEST(RunStridedCopy, Reverses) {
  const Bytes source = Counting(4);
  Bytes target(4);
  RunStridedCopy({.extent = {4},
                  .source_stride_bytes = {-1},
                  .target_stride_bytes = {1},
                  .source_offset_bytes = 3},
                 source.data(), target.data());
  EXPECT_THAT(Values(target), ElementsAre(4, 3, 2, 1));
}

TEST(RunStridedCopy, RepeatsAnElementOfStrideZero) {
  const Bytes source = Counting(2);
  Bytes target(6);
  RunStridedCopy({.extent = {3, 2}, .source_stride_bytes = {0, 1}, .target_stride_bytes = {2, 1}},
                 source.data(), target.data());
  EXPECT_THAT(Values(target), ElementsAre(1, 2, 1, 2, 1, 2));
}

TEST(RunStridedCopy, CopiesEveryElementSizeWholeAndNothingBetween) {
  for (const std::uint64_t size : {1u, 2u, 3u, 4u, 5u, 8u, 12u, 16u, 17u}) {
    const Bytes source = Counting(3 * size);
    Bytes target(6 * size);
    const auto step = static_cast<std::int64_t>(size);
    RunStridedCopy({.extent = {3},
                    .source_stride_bytes = {step},
                    .target_stride_bytes = {2 * step},
                    .element_size = size},
                   source.data(), target.data());
    for (std::size_t i = 0; i < target.size(); ++i) {
      const std::size_t element = i / size;
      const std::size_t expected = element % 2 == 0 ? element / 2 * size + i % size + 1 : 0;
      EXPECT_EQ(std::to_integer<std::size_t>(target[i]), expected) << size << " at " << i;
    }
  }
}

TEST(RunStridedCopy, StepsThroughFiveDimensions) {
  const Bytes source = Counting(32);
  Bytes target(32);
  RunStridedCopy({.extent = {2, 2, 2, 2, 2},
                  .source_stride_bytes = {1, 2, 4, 8, 16},
                  .target_stride_bytes = {16, 8, 4, 2, 1}},
                 source.data(), target.data());
  for (std::size_t i = 0; i < 32; ++i) {
    const std::size_t reversed = (i & 1) << 4 | (i & 2) << 2 | (i & 4) | (i & 8) >> 2 | i >> 4;
    EXPECT_EQ(target[i], source[reversed]) << i;
  }
}

TEST(CopyFromLinear, PutsABoxOfARunIntoAWiderTensor) {
  // The run holds elements 3..10 of a 4 x 3 box that begins at (2, 1); its full rows 1 and 2 go to
  // memory of a 5 x 8 box at (1, 0).
  const Region linear{{.offset = {2, 1}, .extent = {4, 3}}, {2, 10}};
  const Box part{.offset = {3, 1}, .extent = {2, 3}};
  const Box origin{.offset = {1, 0}, .extent = {5, 8}};
  const StridedCopy copy = CopyFromLinear(linear, part, origin, {8, 1}, 1);
  EXPECT_EQ(copy.source_offset_bytes, 1);
  EXPECT_EQ(copy.target_offset_bytes, 17);
  EXPECT_THAT(copy.extent, ElementsAre(2));
  EXPECT_EQ(copy.element_size, 3u);
}

TEST(CopyFromLinear, OfAWholeShardIsOnePiece) {
  const Region linear = Region::Of({.offset = {4, 0}, .extent = {4, 8}});
  const StridedCopy copy =
      CopyFromLinear(linear, linear.box, linear.box, DenseStridesBytes({4, 8}, 2), 2);
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_EQ(copy.byte_count(), 64u);
}

TEST(CopyFromLinear, OfAScalarIsItsBytes) {
  const StridedCopy copy = CopyFromLinear(Region::Whole({}), {}, {}, {}, 8);
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_EQ(copy.byte_count(), 8u);
}

TEST(CopyFromLinear, FindsARunFarInsideAHugeBox) {
  // The box has 2^62 elements of 8 bytes: the run's place in it passes 64 bits, that in the buffer
  // does not.
  const Region linear{{.offset = {0, 0, 0}, .extent = {4, 1ull << 31, 1ull << 29}},
                      {(3ull << 60) + 5, (3ull << 60) + 9}};
  const Box part{.offset = {3, 0, 6}, .extent = {1, 1, 3}};
  const StridedCopy copy = CopyFromLinear(linear, part, part, {8, 8, 8}, 8);
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_EQ(copy.source_offset_bytes, 8);
  EXPECT_EQ(copy.target_offset_bytes, 0);
  EXPECT_EQ(copy.byte_count(), 24u);
}

// Every second element of three rows, to the last place first.
TEST(CopyFromPacked, CopiesTheSameFromWhatItNeeds) {
  const StridedCopy copy{.extent = {3, 2},
                         .source_stride_bytes = {10, 4},
                         .target_stride_bytes = {-4, -2},
                         .element_size = 2,
                         .source_offset_bytes = 1,
                         .target_offset_bytes = 10};
  const Bytes source = Counting(32);
  Bytes packed;
  for (const std::size_t at : {1u, 5u, 11u, 15u, 21u, 25u}) {
    packed.insert(packed.end(), {source[at], source[at + 1]});
  }
  Bytes expected(12);
  RunStridedCopy(copy, source.data(), expected.data());
  Bytes found(12);
  RunStridedCopy(CopyFromPacked(copy), packed.data(), found.data());
  EXPECT_EQ(Values(found), Values(expected));
}

TEST(CopyFromPacked, OfColumnsIntoDenseMemoryIsOnePiece) {
  const StridedCopy copy{.extent = {3},
                         .source_stride_bytes = {100},
                         .target_stride_bytes = {10},
                         .element_size = 10,
                         .source_offset_bytes = 30,
                         .target_offset_bytes = 5};
  const StridedCopy packed = CopyFromPacked(copy);
  EXPECT_TRUE(packed.is_contiguous());
  EXPECT_EQ(packed.element_size, 30u);
  EXPECT_EQ(packed.target_offset_bytes, 5);
}

TEST(CopyToLinear, IsTheWayBack) {
  const Region linear{{.offset = {2, 1}, .extent = {4, 3}}, {2, 10}};
  const Box part{.offset = {3, 1}, .extent = {2, 3}};
  const Box origin{.offset = {1, 0}, .extent = {5, 8}};
  const StridedCopy there = CopyFromLinear(linear, part, origin, {8, 1}, 1);
  const StridedCopy back = CopyToLinear(linear, part, origin, {8, 1}, 1);
  const Bytes shard = Counting(8);
  Bytes tensor(40);
  Bytes again(8);
  RunStridedCopy(there, shard.data(), tensor.data());
  RunStridedCopy(back, tensor.data(), again.data());
  EXPECT_THAT(Values(again), ElementsAre(0, 2, 3, 4, 5, 6, 7, 0));
}

}  // namespace
}  // namespace sealpoint::internal::layout
