// SPDX-License-Identifier: Apache-2.0
#include "lib/format/trailer.h"

#include <gtest/gtest.h>

#include <limits>

#include "lib/base/endian.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/rule_matchers.h"

namespace sealpoint::internal::format {
namespace {

using sealpoint::testing::BreaksRule;
using sealpoint::testing::FlipBit;
using sealpoint::testing::ResealTrailer;

// 65 records: a group list of 32 bytes at 10048, records at 10112, manifest at 14272.
Trailer Example() {
  return {.blob = BlobId::FromHex("000102030405060708090a0b0c0d0e0f").value(),
          .file_size = 16384,
          .chunks_end = 10001,
          .record_count = 65,
          .shard_count = 2,
          .manifest_size = 500,
          .raw_bytes = 9000,
          .group_list_digest = Digest::FromHex("101112131415161718191a1b1c1d1e1f").value(),
          .manifest_digest = Digest::FromHex("202122232425262728292a2b2c2d2e2f").value(),
          .header_digest = Digest::FromHex("303132333435363738393a3b3c3d3e3f").value(),
          .digest_algorithm = DigestAlgorithm::kXxh3_128};
}

Trailer WithoutRecords() {
  Trailer trailer = Example();
  trailer.chunks_end = 128;
  trailer.record_count = 0;
  trailer.shard_count = 0;
  trailer.raw_bytes = 0;
  trailer.file_size = 4096;
  return trailer;
}

Status DecodeStatus(const TrailerBytes& bytes) { return DecodeTrailer(bytes).status(); }

// The example with one field replaced under a right digest.
template <typename T>
TrailerBytes With(std::size_t offset, T value, const Trailer& trailer = Example()) {
  TrailerBytes bytes = EncodeTrailer(trailer);
  StoreLe(bytes, offset, value);
  ResealTrailer(bytes);
  return bytes;
}

TEST(Sections, FollowEachOtherAtMultiplesOf64) {
  const BlobSections sections = ComputeSections(10001, 65, 500).value();
  EXPECT_EQ(sections.table, 10048u);
  EXPECT_EQ(sections.group_list_size, 32u);
  EXPECT_EQ(sections.records, 10112u);
  EXPECT_EQ(sections.records_size, 65u * 64u);
  EXPECT_EQ(sections.manifest, 14272u);
  EXPECT_EQ(sections.manifest_end, 14772u);
  EXPECT_EQ(sections.file_size, 16384u);
  EXPECT_EQ(sections.trailer, 16128u);
}

TEST(Sections, LeaveNoGapWhereEverythingIsAligned) {
  // 256 records have a group list of 64 bytes.
  const BlobSections sections = ComputeSections(4096, 256, 3776).value();
  EXPECT_EQ(sections.table, 4096u);
  EXPECT_EQ(sections.records, 4160u);
  EXPECT_EQ(sections.manifest, 20544u);
  EXPECT_EQ(sections.manifest_end, 24320u);
  EXPECT_EQ(sections.trailer, 24320u);
  EXPECT_EQ(sections.file_size, 24576u);
}

TEST(Sections, AreEmptyWithoutRecords) {
  const BlobSections sections = ComputeSections(128, 0, 40).value();
  EXPECT_EQ(sections.table, 128u);
  EXPECT_EQ(sections.records, 128u);
  EXPECT_EQ(sections.manifest, 128u);
  EXPECT_EQ(sections.file_size, 4096u);
}

TEST(Sections, RefuseEverySumThatDoesNotFit64Bits) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const auto refused = [](std::uint64_t chunks_end, std::uint32_t records,
                          std::uint64_t manifest_size) {
    const Status status = ComputeSections(chunks_end, records, manifest_size).status();
    return status.code() == Code::kCorrupt && status.place().rule == "R-BLB-04";
  };
  EXPECT_TRUE(refused(kMost, 1, 0));                 // rounding up the chunk area
  EXPECT_TRUE(refused(kMost - 63, 512, 0));          // the group list
  EXPECT_TRUE(refused(kMost - 127, 7 * 64, 0));      // rounding it up, or the records
  EXPECT_TRUE(refused(kMost - 4095, 1, 0));          // the trailer and the end
  EXPECT_TRUE(refused(128, 1, kMost));               // the manifest
  EXPECT_TRUE(refused(128, 1, kMost - 512));         // the trailer
  EXPECT_TRUE(refused(128, 1, kMost - 128 - 4096));  // rounding up the file
}

TEST(RecordsOffset, AgreesWithTheSections) {
  for (const std::uint32_t count : {0u, 1u, 64u, 65u, 256u, 257u, 100000u}) {
    const BlobSections sections = ComputeSections(10001, count, 500).value();
    EXPECT_EQ(RecordsOffset(sections.table, count), sections.records) << count;
  }
}

TEST(Trailer, ReadsBackWhatWasWritten) {
  EXPECT_EQ(DecodeTrailer(EncodeTrailer(Example())).value(), Example());
}

TEST(Trailer, ReadsBackABlobWithoutRecords) {
  EXPECT_EQ(DecodeTrailer(EncodeTrailer(WithoutRecords())).value(), WithoutRecords());
}

TEST(Trailer, LiesAsTheSpecificationSays) {
  const Trailer trailer = Example();
  const TrailerBytes bytes = EncodeTrailer(trailer);
  EXPECT_EQ(AsText(ByteSpan(bytes).first(8)), "\x89SPB\r\n\x1a\n");
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 8), 256u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 12), 64u);
  EXPECT_EQ(LoadId<Id128>(bytes, 16), trailer.blob);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 32), 16384u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 40), 10001u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 48), 10048u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 56), 65u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 60), 2u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 64), 10112u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 72), 14272u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 80), 500u);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 88), 9000u);
  EXPECT_EQ(LoadId<Id128>(bytes, 96), trailer.group_list_digest);
  EXPECT_EQ(LoadId<Id128>(bytes, 112), trailer.manifest_digest);
  EXPECT_EQ(LoadId<Id128>(bytes, 128), trailer.header_digest);
  EXPECT_EQ(LoadLe<std::uint16_t>(bytes, 144), 1u);
  EXPECT_EQ(LoadId<Id128>(bytes, 240), StoredTrailerDigest(bytes));
  TrailerBytes resealed = bytes;
  ResealTrailer(resealed);
  EXPECT_EQ(resealed, bytes);
}

TEST(Trailer, RejectsEverySingleFlippedBit) {
  TrailerBytes bytes = EncodeTrailer(Example());
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    FlipBit(bytes, bit);
    const Status status = DecodeStatus(bytes);
    EXPECT_THAT(status, BreaksRule(Code::kCorrupt, "R-BLB-02", bit < 64 ? 0u : 240u)) << bit;
    FlipBit(bytes, bit);
  }
  EXPECT_TRUE(DecodeStatus(bytes).ok());
}

TEST(Trailer, RejectsAnotherMagic) {
  EXPECT_THAT(DecodeStatus(With(3, std::uint8_t{'T'})), BreaksRule(Code::kCorrupt, "R-BLB-02", 0));
}

TEST(Trailer, RejectsAnotherLength) {
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(8, 320)), BreaksRule(Code::kCorrupt, "R-BLB-02", 8));
}

TEST(Trailer, RejectsAnotherRecordSize) {
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(12, 48)),
              BreaksRule(Code::kCorrupt, "R-BLB-02", 12));
}

TEST(Trailer, DoesNotSupportAnotherDigestAlgorithm) {
  for (const std::uint16_t algorithm : {std::uint16_t{0}, std::uint16_t{2}}) {
    EXPECT_THAT(DecodeStatus(With(144, algorithm)),
                BreaksRule(Code::kUnsupported, "R-IDX-08", 144));
  }
}

// Records of another algorithm have another size; the algorithm is the cause to report.
TEST(Trailer, ReportsTheAlgorithmBeforeTheRecordSize) {
  TrailerBytes bytes = With<std::uint16_t>(144, 2);
  StoreLe<std::uint32_t>(bytes, 12, 96);
  ResealTrailer(bytes);
  EXPECT_THAT(DecodeStatus(bytes), BreaksRule(Code::kUnsupported, "R-IDX-08", 144));
}

TEST(Trailer, DoesNotSupportANonZeroReservedByte) {
  for (std::size_t offset = 146; offset < 224; ++offset) {
    EXPECT_THAT(DecodeStatus(With(offset, std::uint8_t{1})),
                BreaksRule(Code::kUnsupported, "R-HDR-06", 146));
  }
}

TEST(Trailer, AnUnknownCompatFeatureOfTheBlobMayHaveTheExtension) {
  for (std::size_t offset = 224; offset < 240; ++offset) {
    const Trailer trailer = DecodeTrailer(With(offset, std::uint8_t{1})).value();
    EXPECT_TRUE(CheckExtension(trailer, {.compat = 4, .incompat = 0}).ok()) << offset;
    EXPECT_THAT(CheckExtension(trailer, {}), BreaksRule(Code::kUnsupported, "R-HDR-06", 224));
  }
  EXPECT_TRUE(CheckExtension(DecodeTrailer(EncodeTrailer(Example())).value(), {}).ok());
}

TEST(Trailer, RejectsAnotherTableOffset) {
  EXPECT_THAT(DecodeStatus(With<std::uint64_t>(48, 10112)),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 48));
}

TEST(Trailer, RejectsAnotherRecordsOffset) {
  EXPECT_THAT(DecodeStatus(With<std::uint64_t>(64, 10080)),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 64));
}

TEST(Trailer, RejectsAnotherManifestOffset) {
  EXPECT_THAT(DecodeStatus(With<std::uint64_t>(72, 14336)),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 72));
}

TEST(Trailer, RejectsAnotherFileSize) {
  EXPECT_THAT(DecodeStatus(With<std::uint64_t>(32, 20480)),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 32));
}

TEST(Trailer, RejectsACountOfRecordsThatMovesTheManifest) {
  EXPECT_THAT(DecodeStatus(With<std::uint32_t>(56, 66)),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 72));
}

TEST(Trailer, RejectsAManifestLengthThatMovesTheEnd) {
  EXPECT_THAT(DecodeStatus(With<std::uint64_t>(80, 5000)),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 32));
}

TEST(Trailer, RejectsAManifestLengthThatDoesNotFit64Bits) {
  EXPECT_THAT(DecodeStatus(With(80, ~std::uint64_t{0})),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 40));
}

TEST(Trailer, RejectsAChunkAreaThatEndsInTheHeader) {
  EXPECT_THAT(DecodeStatus(With<std::uint64_t>(40, 127)),
              BreaksRule(Code::kCorrupt, "R-BLB-04", 40));
}

TEST(Trailer, RejectsAChunkAreaWithoutRecords) {
  Trailer trailer = WithoutRecords();
  trailer.chunks_end = 192;
  EXPECT_THAT(DecodeStatus(EncodeTrailer(trailer)), BreaksRule(Code::kCorrupt, "R-BLB-04", 40));
}

}  // namespace
}  // namespace sealpoint::internal::format
