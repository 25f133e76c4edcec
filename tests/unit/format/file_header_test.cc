// SPDX-License-Identifier: Apache-2.0
#include "lib/format/file_header.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/base/endian.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/rule_matchers.h"

namespace sealpoint::internal::format {
namespace {

using sealpoint::testing::BreaksRule;
using sealpoint::testing::FlipBit;
using sealpoint::testing::ResealHeader;

FileHeader Example() {
  return {.kind = FileKind::kBlob,
          .features = {.compat = 0, .incompat = 0},
          .id = Id128::FromHex("000102030405060708090a0b0c0d0e0f").value(),
          .attempt = AttemptId::FromHex("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff").value(),
          .step = 1234567890123};
}

Bytes Encoded(const FileHeader& header = Example(), std::size_t size = kHeaderSize) {
  Bytes bytes(size);
  EncodeHeader(header, bytes);
  return bytes;
}

Status DecodeStatus(const Bytes& bytes, FileKind kind = FileKind::kBlob) {
  return DecodeHeader(bytes, kind).status();
}

// The example with one field replaced under a right digest.
template <typename T>
Bytes With(std::size_t offset, T value) {
  Bytes bytes = Encoded();
  StoreLe(bytes, offset, value);
  ResealHeader(bytes);
  return bytes;
}

TEST(FileHeader, ReadsBackWhatWasWritten) {
  EXPECT_EQ(DecodeHeader(Encoded(), FileKind::kBlob).value(), Example());
}

TEST(FileHeader, ReadsBackTheExtremesOfEveryField) {
  FileHeader header = Example();
  header.kind = FileKind::kIndex;
  header.features.compat = ~std::uint64_t{0};
  header.step = kNoStep;
  header.attempt = {};
  EXPECT_EQ(DecodeHeader(Encoded(header), FileKind::kIndex).value(), header);
}

TEST(FileHeader, LiesAsTheSpecificationSays) {
  FileHeader header = Example();
  header.features.compat = 0x1122334455667788;
  const Bytes bytes = Encoded(header);
  EXPECT_EQ(AsText(ByteSpan(bytes).first(8)), "\x89SPT\r\n\x1a\n");
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 8), 1u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 12), 1u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 16), 128u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 24), header.features.compat);
  EXPECT_EQ(LoadId<Id128>(bytes, 40), StoredHeaderDigest(bytes));
  EXPECT_EQ(LoadId<Id128>(bytes, 56), header.id);
  EXPECT_EQ(LoadId<Id128>(bytes, 72), header.attempt);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 88), header.step);
  Bytes resealed = bytes;
  ResealHeader(resealed);
  EXPECT_EQ(resealed, bytes);
}

TEST(FileHeader, OverwritesWhatTheBufferHeldInItsFields) {
  Bytes bytes(kHeaderSize, std::byte{0xa5});
  EncodeHeader(Example(), bytes);
  EXPECT_EQ(bytes, Encoded());
}

TEST(FileHeader, IgnoresWhatFollowsIt) {
  Bytes bytes = Encoded();
  bytes.resize(kHeaderSizeMax, std::byte{0x5a});
  EXPECT_EQ(DecodeHeader(bytes, FileKind::kBlob).value(), Example());
}

TEST(FileHeader, RejectsEveryShorterFile) {
  const Bytes whole = Encoded();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes shorter(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(DecodeStatus(shorter), BreaksRule(Code::kCorrupt, "R-HDR-01", size)) << size;
  }
}

TEST(FileHeader, RejectsEverySingleFlippedBit) {
  Bytes bytes = Encoded();
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    FlipBit(bytes, bit);
    const Status status = DecodeStatus(bytes);
    EXPECT_FALSE(status.ok()) << bit;
    EXPECT_TRUE(status.place().rule.starts_with("R-HDR-")) << bit;
    FlipBit(bytes, bit);
  }
  EXPECT_TRUE(DecodeStatus(bytes).ok());
}

TEST(FileHeader, RejectsAnotherMagicBeforeAnythingElse) {
  for (std::size_t i = 0; i < 8; ++i) {
    Bytes bytes = Encoded();
    bytes[i] ^= std::byte{1};
    StoreLe<std::uint32_t>(bytes, 16, 7);
    EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kCorrupt, "R-HDR-10", 0)) << i;
  }
}

TEST(FileHeader, RejectsAHeaderLengthThatIsNoMultipleOfEight) {
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(16, 60)),
              BreaksRule(Code::kCorrupt, "R-HDR-03", 16));
}

TEST(FileHeader, RejectsAHeaderLengthBelowTheFrozenPrefix) {
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(16, 48)),
              BreaksRule(Code::kCorrupt, "R-HDR-03", 16));
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(16, 0)), BreaksRule(Code::kCorrupt, "R-HDR-03", 16));
}

TEST(FileHeader, RejectsAHeaderLengthAboveTheMost) {
  for (const std::uint32_t size : {std::uint32_t{4104}, std::uint32_t{0xfffffff8}}) {
    Bytes bytes = With(16, size);
    bytes.resize(5000);
    EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kCorrupt, "R-HDR-03", 16)) << size;
  }
}

TEST(FileHeader, RejectsAHeaderLengthBehindTheEndOfTheFile) {
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(16, 136)),
              BreaksRule(Code::kCorrupt, "R-HDR-01", 128));
}

TEST(FileHeader, RejectsAnotherDigest) {
  Bytes bytes = Encoded();
  bytes[40] ^= std::byte{1};
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kCorrupt, "R-HDR-04", 40));
}

TEST(FileHeader, ComparesTheDigestBeforeTheVersion) {
  Bytes bytes = Encoded();
  StoreLe<std::uint32_t>(bytes, 12, kFormatVersion + 1);
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kCorrupt, "R-HDR-04", 40));
}

TEST(FileHeader, DoesNotSupportAnotherVersion) {
  for (const std::uint32_t version : {kDraftVersion, kFormatVersion + 1, ~std::uint32_t{0}}) {
    EXPECT_THAT(DecodeStatus(With(12, version)), BreaksRule(Code::kUnsupported, "R-HDR-05", 12));
  }
}

// A later version may have a longer header; it must read as unsupported, never as corrupt.
TEST(FileHeader, DoesNotSupportALongerHeaderOfAnotherVersion) {
  for (const std::size_t size : {std::size_t{56}, std::size_t{4096}}) {
    Bytes bytes = Encoded(Example(), kHeaderSizeMax);
    bytes.resize(size);
    StoreLe(bytes, 16, static_cast<std::uint32_t>(size));
    StoreLe<std::uint32_t>(bytes, 12, kFormatVersion + 1);
    ResealHeader(bytes);
    EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kUnsupported, "R-HDR-05", 12)) << size;
  }
}

TEST(FileHeader, DoesNotSupportAnUnknownIncompatBit) {
  EXPECT_TRUE(DecodeStatus(With(32, kDeltaFeatures)).ok());
  for (unsigned bit = 0; bit < 64; ++bit) {
    if (std::uint64_t{1} << bit == kDeltaFeature) continue;  // R-DLT-01 finds the other missing
    EXPECT_THAT(DecodeStatus(With(32, std::uint64_t{1} << bit)),
                BreaksRule(Code::kUnsupported, "R-HDR-05", 32))
        << bit;
  }
}

TEST(FileHeader, DoesNotSupportAnotherLengthInThisVersion) {
  for (const std::size_t size : {std::size_t{56}, std::size_t{120}, std::size_t{136}}) {
    Bytes bytes = Encoded();
    bytes.resize(size);
    StoreLe(bytes, 16, static_cast<std::uint32_t>(size));
    ResealHeader(bytes);
    EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kUnsupported, "R-HDR-05", 16)) << size;
  }
}

// The kind is named and not the length, which no kind prescribes here.
TEST(FileHeader, DoesNotSupportAShortHeaderOfAnUnknownKind) {
  Bytes bytes = Encoded();
  bytes.resize(56);
  StoreLe<std::uint32_t>(bytes, 8, 9);
  StoreLe<std::uint32_t>(bytes, 16, 56);
  ResealHeader(bytes);
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kUnsupported, "R-HDR-05", 8));
}

TEST(FileHeader, IgnoresUnknownCompatBits) {
  const Result<FileHeader> header = DecodeHeader(With(24, std::uint64_t{1} << 63), FileKind::kBlob);
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(header->features.compat, std::uint64_t{1} << 63);
}

TEST(FileHeader, DoesNotSupportANonZeroReservedByte) {
  for (std::size_t offset = 20; offset < 24; ++offset) {
    EXPECT_THAT(DecodeStatus(With(offset, std::uint8_t{1})),
                BreaksRule(Code::kUnsupported, "R-HDR-06", 20));
  }
  for (std::size_t offset = 96; offset < 128; ++offset) {
    EXPECT_THAT(DecodeStatus(With(offset, std::uint8_t{1})),
                BreaksRule(Code::kUnsupported, "R-HDR-06", 96));
  }
}

TEST(FileHeader, RejectsAnotherKindThanTheNamePromises) {
  EXPECT_THAT(DecodeStatus(Encoded(), FileKind::kIndex), BreaksRule(Code::kCorrupt, "R-HDR-07", 8));
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(8, 2)), BreaksRule(Code::kCorrupt, "R-HDR-07", 8));
}

// A later version may add kinds: 4 is reserved for one.
TEST(FileHeader, DoesNotSupportAnUnknownKind) {
  for (const std::uint32_t kind : {0u, 4u, 0x10001u}) {
    EXPECT_THAT(DecodeStatus(With(8, kind)), BreaksRule(Code::kUnsupported, "R-HDR-05", 8)) << kind;
  }
}

TEST(FileHeader, TellsAMarkerUnderTheNameOfABlobByItsKind) {
  FileHeader header = Example();
  header.kind = FileKind::kMarker;
  EXPECT_THAT(DecodeStatus(Encoded(header, kMarkerSize)),
              BreaksRule(Code::kCorrupt, "R-HDR-07", 8));
}

}  // namespace
}  // namespace sealpoint::internal::format
