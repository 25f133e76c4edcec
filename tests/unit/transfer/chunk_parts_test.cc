// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/chunk_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "tests/support/state/saved_state.h"

namespace sealpoint::internal::transfer {
namespace {

using sealpoint::testing::HasCode;

// A chunk of a matrix of 16 rows of 64 bytes.
constexpr std::uint64_t kRows = 16;
constexpr std::uint64_t kColumns = 64;
constexpr std::uint64_t kRawSize = kRows * kColumns;

Bytes NumberedBytes() {
  Bytes bytes(kRawSize);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 256);
  return bytes;
}

layout::StridedCopy Block(std::uint64_t row, std::uint64_t column, std::uint64_t rows,
                          std::uint64_t columns) {
  layout::StridedCopy copy{
      .extent = {rows, columns},
      .source_stride_bytes = {kColumns, 1},
      .target_stride_bytes = {1, 1000},  // any
      .source_offset_bytes = static_cast<std::int64_t>(row * kColumns + column)};
  return copy;
}

ChunkParts NeededOf(const std::vector<layout::StridedCopy>& copies,
                    std::uint64_t raw_size = kRawSize) {
  DeliveryPlan plan;
  plan.copies.emplace_back();  // another chunk's
  for (const layout::StridedCopy& copy : copies)
    plan.copies.emplace_back(copy, nullptr, kHostDevice);
  PlanChunk chunk{.raw_size = static_cast<std::uint32_t>(raw_size)};
  chunk.first_copy = 1;
  chunk.copy_count = copies.size();
  return ChunkParts::NeededBy(plan, chunk);
}

Bytes Encoded(const ChunkParts& parts) {
  Bytes bytes;
  WireWriter out(bytes);
  parts.Encode(out);
  return bytes;
}

// What arrives, among bytes that nobody sent.
Bytes SendAndUnpack(const ChunkParts& parts, const Bytes& raw) {
  Bytes packed(parts.size_bytes());
  parts.Pack(raw, packed);
  Bytes arrived(raw.size(), std::byte{0xee});
  parts.Unpack(packed, arrived);
  return arrived;
}

TEST(ChunkParts, OfColumnsAreTheirBytesAlone) {
  const ChunkParts parts = NeededOf({Block(0, 8, kRows, 16)});
  EXPECT_EQ(parts.size_bytes(), kRows * 16);
  EXPECT_LE(Encoded(parts).size(), 8u * (1 + 4)) << "one pattern";
  const Bytes raw = NumberedBytes();
  const Bytes arrived = SendAndUnpack(parts, raw);
  for (std::size_t i = 0; i < kRawSize; ++i) {
    const bool is_wanted = i % kColumns >= 8 && i % kColumns < 24;
    EXPECT_EQ(arrived[i], is_wanted ? raw[i] : std::byte{0xee}) << i;
  }
}

TEST(ChunkParts, OfSeveralCopiesAreTheirUnion) {
  const ChunkParts parts =
      NeededOf({Block(2, 8, 3, 16), Block(2, 20, 3, 8), Block(9, 0, 1, 4), Block(9, 4, 1, 4)});
  EXPECT_EQ(parts.size_bytes(), 3u * 20 + 8);
  const Bytes raw = NumberedBytes();
  Bytes expected(kRawSize, std::byte{0xee});
  for (std::size_t i = 0; i < kRawSize; ++i) {
    const std::size_t row = i / kColumns;
    const std::size_t column = i % kColumns;
    const bool is_wanted =
        (row >= 2 && row < 5 && column >= 8 && column < 28) || (row == 9 && column < 8);
    if (is_wanted) expected[i] = raw[i];
  }
  EXPECT_EQ(SendAndUnpack(parts, raw), expected);
}

TEST(ChunkParts, OfElementsApartAreSingleElements) {
  layout::StridedCopy every_third{.extent = {20},
                                  .source_stride_bytes = {12},
                                  .target_stride_bytes = {4},
                                  .element_size = 4,
                                  .source_offset_bytes = 8};
  EXPECT_EQ(NeededOf({every_third}).size_bytes(), 80u);
  every_third.extent = {1};
  EXPECT_EQ(NeededOf({every_third}).size_bytes(), 4u);
}

TEST(ChunkParts, AreTheWholeChunkWhereLittleIsLeftOut) {
  EXPECT_EQ(NeededOf({Block(0, 0, kRows, 48)}).size_bytes(), kRows * 48);
  EXPECT_EQ(NeededOf({Block(0, 0, kRows, 49)}), ChunkParts(kRawSize));
}

TEST(ChunkParts, AreTheWholeChunkWhereThereAreTooManyPieces) {
  const auto every_other_byte = [](std::uint64_t count) {
    return layout::StridedCopy{
        .extent = {count}, .source_stride_bytes = {2}, .target_stride_bytes = {1}};
  };
  constexpr std::uint64_t kMost = std::uint64_t{1} << 16;
  EXPECT_EQ(NeededOf({every_other_byte(kMost)}, 2 * kMost).size_bytes(), kMost);
  EXPECT_EQ(NeededOf({every_other_byte(kMost + 1)}, 4 * kMost), ChunkParts(4 * kMost));
}

// Pieces whose distances grow make a pattern each.
std::vector<layout::StridedCopy> Irregular(std::uint64_t patterns) {
  std::vector<layout::StridedCopy> copies;
  for (std::uint64_t i = 0; i < patterns; ++i) {
    copies.push_back(
        {.element_size = i + 1, .source_offset_bytes = static_cast<std::int64_t>(i * 200)});
  }
  return copies;
}

TEST(ChunkParts, AreTheWholeChunkWhereThereAreTooManyPatterns) {
  EXPECT_EQ(NeededOf(Irregular(64), 20000).size_bytes(), 64u * 65 / 2);
  EXPECT_EQ(NeededOf(Irregular(65), 20000), ChunkParts(20000));
}

TEST(ChunkParts, ComeAsTheyWereSent) {
  for (const ChunkParts& parts :
       {ChunkParts(kRawSize), NeededOf({Block(1, 2, 3, 4)}), NeededOf(Irregular(5)),
        NeededOf({Block(kRows - 1, 60, 1, 4)}), NeededOf({Block(0, 63, kRows, 1)})}) {
    const Bytes bytes = Encoded(parts);
    WireReader in(bytes);
    const auto decoded = ChunkParts::Decode(in, kRawSize);
    ASSERT_TRUE(decoded.ok());
    EXPECT_EQ(*decoded, parts);
    EXPECT_TRUE(in.at_end());
  }
}

using Pattern = std::array<std::uint64_t, 4>;  // begin, length, count, distance

Status Check(const std::vector<Pattern>& patterns) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(std::uint64_t{patterns.size()});
  for (const Pattern& pattern : patterns) {
    for (const std::uint64_t number : pattern) out.Put(number);
  }
  WireReader in(bytes);
  return ChunkParts::Decode(in, 100).status();
}

TEST(ChunkParts, RefusePiecesThatTheChunkHasNot) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  EXPECT_TRUE(Check({{0, 10, 10, 10}}).ok());
  EXPECT_TRUE(Check({{0, 10, 1, 0}, {10, 90, 1, 0}}).ok());
  EXPECT_THAT(Check({}), HasCode(Code::kComm)) << "none";
  EXPECT_THAT(Check({{0, 0, 1, 0}}), HasCode(Code::kComm)) << "empty";
  EXPECT_THAT(Check({{0, 10, 0, 10}}), HasCode(Code::kComm)) << "empty";
  EXPECT_THAT(Check({{0, 101, 1, 0}}), HasCode(Code::kComm)) << "behind the end";
  EXPECT_THAT(Check({{1, 10, 10, 10}}), HasCode(Code::kComm)) << "behind the end";
  EXPECT_THAT(Check({{0, 10, 11, 10}}), HasCode(Code::kComm)) << "behind the end";
  EXPECT_THAT(Check({{kMax, 10, 1, 0}}), HasCode(Code::kComm)) << "begins behind the end";
  EXPECT_THAT(Check({{0, 10, kMax, kMax}}), HasCode(Code::kComm)) << "overflow";
  EXPECT_THAT(Check({{0, 10, 2, 9}}), HasCode(Code::kComm)) << "over each other";
  EXPECT_THAT(Check({{0, 10, 2, 0}}), HasCode(Code::kComm)) << "over each other";
  EXPECT_THAT(Check({{0, 10, 1, 0}, {9, 10, 1, 0}}), HasCode(Code::kComm)) << "back";
}

TEST(ChunkParts, RefuseMorePatternsThanAnyRankSends) {
  std::vector<Pattern> patterns;
  for (std::uint64_t i = 0; i < 64; ++i) patterns.push_back({i, 1, 1, 0});
  EXPECT_TRUE(Check(patterns).ok());
  patterns.push_back({64, 1, 1, 0});
  EXPECT_THAT(Check(patterns), HasCode(Code::kComm));
}

}  // namespace
}  // namespace sealpoint::internal::transfer
