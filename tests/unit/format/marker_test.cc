// SPDX-License-Identifier: Apache-2.0
#include "lib/format/marker.h"

#include <gtest/gtest.h>

#include "lib/base/endian.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/rule_matchers.h"

namespace sealpoint::internal::format {
namespace {

using sealpoint::testing::BreaksRule;
using sealpoint::testing::FailsRule;
using sealpoint::testing::FlipBit;
using sealpoint::testing::ResealMarker;

Marker Commit() {
  return {.kind = MarkerKind::kCommit,
          .features = {.compat = 0, .incompat = 0},
          .attempt = AttemptId::FromHex("000102030405060708090a0b0c0d0e0f").value(),
          .step = 42,
          .parent = AttemptId::FromHex("101112131415161718191a1b1c1d1e1f").value(),
          .sequence = 7,
          .index_size = 12345,
          .index_digest = Digest::FromHex("202122232425262728292a2b2c2d2e2f").value(),
          .blob_count = 3,
          .total_bytes = 12288};
}

Marker Void() {
  return {.kind = MarkerKind::kVoid,
          .attempt = AttemptId::FromHex("000102030405060708090a0b0c0d0e0f").value(),
          .step = kNoStep};
}

Status DecodeStatus(ByteSpan bytes) { return DecodeMarker(bytes).status(); }

// The marker with one field replaced under a right digest.
template <typename T>
MarkerBytes With(const Marker& marker, std::size_t offset, T value) {
  MarkerBytes bytes = EncodeMarker(marker);
  StoreLe(bytes, offset, value);
  ResealMarker(bytes);
  return bytes;
}

TEST(Marker, ReadsBackACommit) {
  EXPECT_EQ(DecodeMarker(EncodeMarker(Commit())).value(), Commit());
}

TEST(Marker, ReadsBackTheFirstOfALineage) {
  Marker marker = Commit();
  marker.parent = {};
  marker.sequence = 1;
  EXPECT_EQ(DecodeMarker(EncodeMarker(marker)).value(), marker);
}

TEST(Marker, ReadsBackTheSecondOfALineage) {
  Marker marker = Commit();
  marker.sequence = 2;
  EXPECT_EQ(DecodeMarker(EncodeMarker(marker)).value(), marker);
}

TEST(Marker, ReadsBackAVoid) { EXPECT_EQ(DecodeMarker(EncodeMarker(Void())).value(), Void()); }

TEST(Marker, LiesAsTheSpecificationSays) {
  const Marker marker = Commit();
  const MarkerBytes bytes = EncodeMarker(marker);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 8), 3u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 16), 512u);
  EXPECT_EQ(LoadId<Id128>(bytes, 56), marker.attempt);
  EXPECT_EQ(LoadId<Id128>(bytes, 72), marker.attempt);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 88), 42u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 128), 1u);
  EXPECT_EQ(LoadId<Id128>(bytes, 136), marker.parent);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 152), 7u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 160), 12345u);
  EXPECT_EQ(LoadId<Id128>(bytes, 168), marker.index_digest);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 184), 3u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 192), 12288u);
  MarkerBytes resealed = bytes;
  ResealMarker(resealed);
  EXPECT_EQ(resealed, bytes);
}

TEST(Marker, RejectsAnEmptyFile) {
  EXPECT_THAT(DecodeStatus({}), BreaksRule(Code::kCorrupt, "R-MRK-02", 0));
}

TEST(Marker, RejectsEveryOtherLength) {
  const MarkerBytes whole = EncodeMarker(Commit());
  Bytes bytes(whole.begin(), whole.end());
  bytes.push_back(std::byte{0});
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kCorrupt, "R-MRK-02", 512));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(DecodeStatus(ByteSpan(whole).first(size)),
                BreaksRule(Code::kCorrupt, "R-MRK-02", size));
  }
}

TEST(Marker, RejectsEverySingleFlippedBit) {
  MarkerBytes bytes = EncodeMarker(Commit());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    FlipBit(bytes, bit);
    EXPECT_FALSE(DecodeStatus(bytes).ok()) << bit;
    FlipBit(bytes, bit);
  }
  EXPECT_TRUE(DecodeStatus(bytes).ok());
}

TEST(Marker, TakesAFileOfAnotherMagicAsNotOurs) {
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_THAT(DecodeStatus(With(Commit(), i, std::uint8_t{0x7f})),
                BreaksRule(Code::kNotACheckpoint, "R-HDR-02", 0));
  }
}

TEST(Marker, RejectsADamagedFieldByTheDigest) {
  MarkerBytes bytes = EncodeMarker(Commit());
  bytes[160] ^= std::byte{1};
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kCorrupt, "R-HDR-04", 40));
}

TEST(Marker, RejectsAHeaderThatCoversOnlyItsCommonPart) {
  MarkerBytes bytes = EncodeMarker(Commit());
  StoreLe<std::uint32_t>(bytes, 16, 128);
  ResealMarker(MutableByteSpan(bytes).first(128));
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kUnsupported, "R-HDR-05", 16));
}

TEST(Marker, RejectsAnotherFileKind) {
  MarkerBytes bytes{};
  EncodeHeader({.kind = FileKind::kBlob, .features = {}, .id = {}, .attempt = {}, .step = 0},
               MutableByteSpan(bytes).first(kHeaderSize));
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kCorrupt, "R-HDR-07", 8));
  // The kind, whose answer is not the milder one, comes before the length, which no index has.
  EXPECT_THAT(DecodeStatus(With(Commit(), 8, std::uint32_t{2})),
              BreaksRule(Code::kCorrupt, "R-HDR-07", 8));
}

TEST(Marker, DoesNotSupportANonZeroReservedByte) {
  for (std::size_t offset = 132; offset < 136; ++offset) {
    EXPECT_THAT(DecodeStatus(With(Commit(), offset, std::uint8_t{1})),
                BreaksRule(Code::kUnsupported, "R-HDR-06", 132));
  }
  for (std::size_t offset = 200; offset < 512; ++offset) {
    EXPECT_THAT(DecodeStatus(With(Commit(), offset, std::uint8_t{0x80})),
                BreaksRule(Code::kUnsupported, "R-HDR-06", offset < 256 ? 200 : 256));
  }
}

TEST(Marker, AnUnknownCompatFeatureMayHaveTheExtensionAndNoOtherByte) {
  Marker marker = Commit();
  marker.features.compat = std::uint64_t{1} << 5;
  for (std::size_t offset = 256; offset < 512; ++offset) {
    EXPECT_EQ(DecodeMarker(With(marker, offset, std::uint8_t{0x80})).value(), marker) << offset;
  }
  for (const std::size_t offset : {96u, 132u, 200u, 255u}) {
    EXPECT_THAT(DecodeStatus(With(marker, offset, std::uint8_t{1})),
                FailsRule(Code::kUnsupported, "R-HDR-06"))
        << offset;
  }
}

TEST(Marker, RejectsAnIdThatIsNotTheAttemptTag) {
  EXPECT_THAT(DecodeStatus(With(Commit(), 56, std::uint8_t{0xff})),
              BreaksRule(Code::kCorrupt, "R-HDR-08", 56));
}

TEST(Marker, DoesNotSupportAnUnknownMarkerKind) {
  for (const std::uint32_t kind : {0u, 3u, 0x10001u}) {
    EXPECT_THAT(DecodeStatus(With(Commit(), 128, kind)),
                BreaksRule(Code::kUnsupported, "R-MRK-03", 128))
        << kind;
  }
}

TEST(Marker, RejectsAZeroAttempt) {
  Marker marker = Commit();
  marker.attempt = {};
  EXPECT_THAT(DecodeStatus(EncodeMarker(marker)), BreaksRule(Code::kCorrupt, "R-MRK-04", 56));
}

TEST(Marker, RejectsAnAttemptThatIsItsOwnParent) {
  Marker marker = Commit();
  marker.parent = marker.attempt;
  EXPECT_THAT(DecodeStatus(EncodeMarker(marker)), BreaksRule(Code::kCorrupt, "R-MRK-04", 136));
}

TEST(Marker, RejectsAParentWithoutALaterSequence) {
  for (const std::uint64_t sequence : {0u, 1u}) {
    Marker marker = Commit();
    marker.sequence = sequence;
    EXPECT_THAT(DecodeStatus(EncodeMarker(marker)), BreaksRule(Code::kCorrupt, "R-MRK-04", 152));
  }
}

TEST(Marker, RejectsASequenceOtherThanOneWithoutAParent) {
  for (const std::uint64_t sequence : {0u, 2u}) {
    Marker marker = Commit();
    marker.parent = {};
    marker.sequence = sequence;
    EXPECT_THAT(DecodeStatus(EncodeMarker(marker)), BreaksRule(Code::kCorrupt, "R-MRK-04", 152));
  }
}

TEST(Marker, RejectsAnIndexShorterThanItsHeader) {
  Marker marker = Commit();
  marker.index_size = 128;
  EXPECT_TRUE(DecodeStatus(EncodeMarker(marker)).ok());
  marker.index_size = 127;
  EXPECT_THAT(DecodeStatus(EncodeMarker(marker)), BreaksRule(Code::kCorrupt, "R-MRK-04", 160));
}

TEST(Marker, RejectsAVoidThatPinsSomething) {
  for (const std::size_t field : {136u, 152u, 160u, 168u, 184u, 192u}) {
    EXPECT_THAT(DecodeStatus(With(Void(), field, std::uint8_t{1})),
                BreaksRule(Code::kCorrupt, "R-MRK-04", field))
        << field;
  }
}

// Whatever else another version changes.
TEST(Marker, EveryVersionSaysHowNewItIs) {
  for (const MarkerBytes& bytes : {With(Commit(), HeaderFields::kVersion.at, std::uint32_t{7}),
                                   With(Commit(), HeaderFields::kIncompat.at, ~std::uint64_t{0}),
                                   With(Commit(), 72, std::uint64_t{1}),
                                   With(Commit(), 300, std::uint8_t{1}), EncodeMarker(Commit())}) {
    const std::optional<Marker> lineage = DecodeLineage(bytes);
    ASSERT_TRUE(lineage);
    EXPECT_EQ(lineage->attempt, Commit().attempt);
    EXPECT_EQ(lineage->parent, Commit().parent);
    EXPECT_EQ(lineage->sequence, Commit().sequence);
  }
}

TEST(Marker, WhatIsNoWholeCommitMarkerSaysNothing) {
  MarkerBytes damaged = With(Commit(), HeaderFields::kVersion.at, std::uint32_t{7});
  FlipBit(damaged, 3000);
  EXPECT_FALSE(DecodeLineage(damaged));
  EXPECT_FALSE(DecodeLineage(EncodeMarker(Void())));
  EXPECT_FALSE(DecodeLineage(With(Commit(), HeaderFields::kKind.at, std::uint32_t{4})));
  EXPECT_FALSE(DecodeLineage(ByteSpan(EncodeMarker(Commit())).first(500)));
  const MarkerBytes whole = EncodeMarker(Commit());
  Bytes longer(whole.begin(), whole.end());
  longer.push_back(std::byte{0});
  EXPECT_FALSE(DecodeLineage(longer));
  MarkerBytes shorter = whole;  // the digest covers no field of the lineage
  StoreLe(MutableByteSpan(shorter), HeaderFields::kHeaderSize.at, std::uint32_t{128});
  ResealMarker(MutableByteSpan(shorter).first(128));
  EXPECT_FALSE(DecodeLineage(shorter));
  EXPECT_FALSE(DecodeLineage(ByteSpan(shorter).first(128))) << "the lineage is behind its end";
}

}  // namespace
}  // namespace sealpoint::internal::format
