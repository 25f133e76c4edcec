// SPDX-License-Identifier: Apache-2.0
// One test per way to break a rule R-COD-*, on frames that are made by hand (RFC 8878), so that
// each is right in all other respects.
#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal::codec {
namespace {

constexpr std::size_t kRawSize = 4096;
constexpr std::uint8_t kContentSizeOf2Bytes = 1 << 6;
constexpr std::uint8_t kSingleSegment = 1 << 5;
constexpr std::uint8_t kReservedBit = 1 << 3;
constexpr std::uint8_t kChecksum = 1 << 2;
constexpr std::uint8_t kDictionaryIdOf1Byte = 1;
constexpr std::uint8_t kWindowOf1KiB = 0;
constexpr std::uint8_t kWindowOf1152Bytes = 1;
constexpr std::uint8_t kWindowOf4KiB = 2 << 3;
constexpr std::uint8_t kWindowOf8KiB = 3 << 3;

void AppendLe(Bytes& out, std::uint64_t value, int byte_count) {
  for (int i = 0; i < byte_count; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}

// Magic and header: the descriptor, then the fields that it announces.
Bytes Header(std::initializer_list<std::uint8_t> header) {
  Bytes out;
  AppendLe(out, 0xfd2fb528, 4);
  for (const std::uint8_t b : header) out.push_back(std::byte{b});
  return out;
}

// The last block: `size` times the byte 'x'.
void AppendRunBlock(Bytes& out, std::uint64_t size) {
  AppendLe(out, size << 3 | 1 << 1 | 1, 3);
  out.push_back(std::byte{'x'});
}

// Two-byte content sizes count from 256.
constexpr std::uint8_t Low(std::size_t size) { return static_cast<std::uint8_t>(size - 256); }
constexpr std::uint8_t High(std::size_t size) {
  return static_cast<std::uint8_t>((size - 256) >> 8);
}

Bytes GoodFrame() {
  Bytes frame = Header({kContentSizeOf2Bytes | kSingleSegment, Low(kRawSize), High(kRawSize)});
  AppendRunBlock(frame, kRawSize);
  return frame;
}

Status Decode(const Bytes& stored, std::size_t raw_size = kRawSize, Codec codec = Codec::kZstd) {
  Bytes raw(raw_size);
  return ChunkCodec().Decode(codec, 4, stored, raw);
}

void ExpectBroken(const Status& status, std::string_view rule) {
  EXPECT_EQ(status.code(), Code::kCorrupt) << status.ToString();
  EXPECT_EQ(status.place().rule, rule) << status.ToString();
}

TEST(CodecRules, AcceptAFrameMadeByHand) {
  Bytes raw(kRawSize);
  const Status status = ChunkCodec().Decode(Codec::kZstd, 4, GoodFrame(), raw);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(raw, Bytes(kRawSize, std::byte{'x'}));
}

TEST(CodecRules, Cod01RefusesAnUnknownCodecAsUnsupported) {
  const Status status = Decode(GoodFrame(), kRawSize, static_cast<Codec>(77));
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.place().rule, "R-COD-01");
}

TEST(CodecRules, Cod02RefusesASkippableFrameBeforeTheFrame) {
  Bytes stored;
  AppendLe(stored, 0x184d2a50, 4);
  AppendLe(stored, 4, 4);
  AppendLe(stored, 0, 4);
  const Bytes frame = GoodFrame();
  stored.insert(stored.end(), frame.begin(), frame.end());
  ExpectBroken(Decode(stored), "R-COD-02");
}

TEST(CodecRules, Cod02RefusesAWrongMagic) {
  Bytes stored = GoodFrame();
  stored[0] ^= std::byte{1};
  ExpectBroken(Decode(stored), "R-COD-02");
}

TEST(CodecRules, Cod02RefusesTheReservedBit) {
  Bytes stored = GoodFrame();
  stored[4] |= std::byte{kReservedBit};
  ExpectBroken(Decode(stored), "R-COD-02");
}

TEST(CodecRules, Cod02RefusesEveryLengthThatEndsWithinTheHeader) {
  const Bytes frame = GoodFrame();
  for (std::size_t size = 0; size < 7; ++size) {
    ExpectBroken(Decode(Bytes(frame.data(), frame.data() + size)), "R-COD-02");
  }
}

TEST(CodecRules, Cod03RefusesAFrameWithoutContentSize) {
  Bytes stored = Header({0, kWindowOf4KiB});
  AppendRunBlock(stored, kRawSize);
  ExpectBroken(Decode(stored), "R-COD-03");
}

TEST(CodecRules, Cod03RefusesAnotherContentSize) {
  ExpectBroken(Decode(GoodFrame(), kRawSize + 1), "R-COD-03");
  ExpectBroken(Decode(GoodFrame(), kRawSize - 1), "R-COD-03");
}

TEST(CodecRules, Cod03ReadsContentSizesOfEightBytes) {
  Bytes stored = Header({3 << 6 | kSingleSegment});
  AppendLe(stored, std::uint64_t{1} << 40 | kRawSize, 8);
  AppendRunBlock(stored, kRawSize);
  ExpectBroken(Decode(stored), "R-COD-03");
}

TEST(CodecRules, Cod04RefusesADictionaryId) {
  Bytes stored = Header({kContentSizeOf2Bytes | kSingleSegment | kDictionaryIdOf1Byte, 0,
                         Low(kRawSize), High(kRawSize)});
  AppendRunBlock(stored, kRawSize);
  ExpectBroken(Decode(stored), "R-COD-04");
}

TEST(CodecRules, Cod05AcceptsAWindowOfTheChunkRoundedUp) {
  Bytes stored =
      Header({kContentSizeOf2Bytes, kWindowOf4KiB, Low(kRawSize - 7), High(kRawSize - 7)});
  AppendRunBlock(stored, kRawSize - 7);
  const Status status = Decode(stored, kRawSize - 7);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST(CodecRules, Cod05RefusesALargerWindow) {
  Bytes stored = Header({kContentSizeOf2Bytes, kWindowOf8KiB, Low(kRawSize), High(kRawSize)});
  AppendRunBlock(stored, kRawSize);
  ExpectBroken(Decode(stored), "R-COD-05");
}

TEST(CodecRules, Cod05AcceptsTheSmallestWindowForASmallChunk) {
  Bytes stored = Header({kContentSizeOf2Bytes, kWindowOf1KiB, Low(300), High(300)});
  AppendRunBlock(stored, 300);
  const Status status = Decode(stored, 300);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST(CodecRules, Cod05RefusesTheNextWindowForASmallChunk) {
  Bytes stored = Header({kContentSizeOf2Bytes, kWindowOf1152Bytes, Low(300), High(300)});
  AppendRunBlock(stored, 300);
  ExpectBroken(Decode(stored, 300), "R-COD-05");
}

TEST(CodecRules, Cod06RefusesAByteBehindTheFrame) {
  Bytes stored = GoodFrame();
  stored.push_back(std::byte{0});
  ExpectBroken(Decode(stored), "R-COD-06");
}

TEST(CodecRules, Cod06RefusesASecondFrame) {
  Bytes stored = GoodFrame();
  const Bytes empty_frame = [] {
    Bytes frame = Header({kSingleSegment, 0});
    AppendLe(frame, 1, 3);
    return frame;
  }();
  stored.insert(stored.end(), empty_frame.begin(), empty_frame.end());
  ExpectBroken(Decode(stored), "R-COD-06");
}

TEST(CodecRules, Cod06RefusesACutFrame) {
  Bytes stored = GoodFrame();
  stored.pop_back();
  ExpectBroken(Decode(stored), "R-COD-06");
}

TEST(CodecRules, Cod06RefusesACutChecksum) {
  Bytes stored =
      Header({kContentSizeOf2Bytes | kSingleSegment | kChecksum, Low(kRawSize), High(kRawSize)});
  AppendRunBlock(stored, kRawSize);
  ExpectBroken(Decode(stored), "R-COD-06");
  AppendLe(stored, 0, 3);
  ExpectBroken(Decode(stored), "R-COD-06");
  AppendLe(stored, 0, 1);
  ExpectBroken(Decode(stored), "R-COD-07");  // it is whole, and wrong
}

TEST(CodecRules, Cod06RefusesABlockOfTheReservedType) {
  Bytes stored = Header({kContentSizeOf2Bytes | kSingleSegment, Low(kRawSize), High(kRawSize)});
  AppendLe(stored, 3 << 1 | 1, 3);
  ExpectBroken(Decode(stored), "R-COD-06");
}

// RFC 8878, section 3.1.1.2.4; zstd itself takes such blocks.
TEST(CodecRules, Cod06RefusesABlockBeyondTheWindow) {
  for (const std::size_t first : {std::size_t{1024}, std::size_t{1025}}) {
    Bytes stored = Header({kContentSizeOf2Bytes, kWindowOf1KiB, Low(1500), High(1500)});
    AppendLe(stored, first << 3 | 1 << 1, 3);
    stored.push_back(std::byte{'x'});
    AppendRunBlock(stored, 1500 - first);
    const Status status = Decode(stored, 1500);
    if (first == 1024) EXPECT_TRUE(status.ok()) << status.ToString();
    if (first != 1024) ExpectBroken(status, "R-COD-06");
  }
}

TEST(CodecRules, Cod06RefusesABlockBeyond128KiB) {
  constexpr std::size_t kMost = 128 * kKiB;
  for (const std::size_t size : {kMost, kMost + 1}) {
    Bytes stored = Header({2 << 6 | kSingleSegment});
    AppendLe(stored, size, 4);
    AppendRunBlock(stored, size);
    const Status status = Decode(stored, size);
    if (size == kMost) EXPECT_TRUE(status.ok()) << status.ToString();
    if (size != kMost) ExpectBroken(status, "R-COD-06");
  }
}

TEST(CodecRules, Cod07RefusesAFrameThatYieldsLessThanItDeclares) {
  Bytes stored = Header({kContentSizeOf2Bytes | kSingleSegment, Low(kRawSize), High(kRawSize)});
  AppendRunBlock(stored, kRawSize - 1);
  ExpectBroken(Decode(stored), "R-COD-07");
}

TEST(CodecRules, Cod07RefusesAFrameThatYieldsMoreAndWritesNothingBehindTheChunk) {
  Bytes stored = Header({kContentSizeOf2Bytes | kSingleSegment, Low(kRawSize), High(kRawSize)});
  AppendLe(stored, 1 << 3, 3);  // a block of one plain byte, not the last
  stored.push_back(std::byte{'y'});
  AppendRunBlock(stored, kRawSize);
  Bytes raw(kRawSize + 64, std::byte{0xee});
  ExpectBroken(ChunkCodec().Decode(Codec::kZstd, 4, stored, MutableByteSpan(raw).first(kRawSize)),
               "R-COD-07");
  EXPECT_EQ(Bytes(raw.begin() + kRawSize, raw.end()), Bytes(64, std::byte{0xee}));
}

TEST(CodecRules, Cod07RefusesABlockOfNonsense) {
  Bytes stored = Header({kContentSizeOf2Bytes | kSingleSegment, Low(kRawSize), High(kRawSize)});
  AppendLe(stored, 16 << 3 | 2 << 1 | 1, 3);
  stored.insert(stored.end(), 16, std::byte{0xff});
  ExpectBroken(Decode(stored), "R-COD-07");
}

TEST(CodecRules, Cod07RefusesARawChunkOfAnotherLength) {
  ExpectBroken(Decode(Bytes(7), 8, Codec::kNone), "R-COD-07");
}

TEST(CodecRules, Cod08RefusesACodedChunkThatIsNotSmaller) {
  constexpr std::size_t kSize = 20;
  Bytes stored = Header({kSingleSegment, kSize});
  AppendLe(stored, kSize << 3 | 1, 3);  // a block of plain bytes
  stored.insert(stored.end(), kSize, std::byte{'x'});
  ExpectBroken(Decode(stored, kSize), "R-COD-08");
}

// 4 bytes of magic, descriptor, length, block header of 3 and one byte: ten for ten.
TEST(CodecRules, Cod08RefusesACodedChunkOfExactlyItsRawLength) {
  Bytes frame = Header({kSingleSegment, 10});
  AppendRunBlock(frame, 10);
  ASSERT_EQ(frame.size(), 10u);
  ExpectBroken(Decode(frame, 10), "R-COD-08");
}

TEST(CodecRules, Cod02TakesAFrameThatIsOnlyItsHeaderForACutOne) {
  // The header is whole, so that what is missing is the block: R-COD-06.
  ExpectBroken(Decode(Header({kSingleSegment, 10}), 10), "R-COD-06");
}

TEST(CodecRules, HoldForTheByteSplitToo) {
  Bytes stored = GoodFrame();
  stored.push_back(std::byte{0});
  ExpectBroken(Decode(stored, kRawSize, Codec::kByteSplitZstd), "R-COD-06");
}

}  // namespace
}  // namespace sealpoint::internal::codec
