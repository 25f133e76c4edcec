// SPDX-License-Identifier: Apache-2.0
//
// Header, trailer, table and padding of a blob: one damage each, with its rule and place.
#include <string>
#include <vector>

#include "lib/base/endian.h"
#include "lib/format/constants.h"
#include "tests/support/container/format_surgery.h"
#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using format::ChunkRecord;
using ::testing::ElementsAre;

class BlobViolations : public VerifyFixture {
 protected:
  void SetUp() override { Store(SmallSpec()); }

  // The one violation of blob 0 of a container made with these hooks.
  void ExpectOne(const MiniHooks& hooks, Code code, const std::string& rule, std::uint64_t offset,
                 VerifyLevel level = VerifyLevel::kStructure) {
    MiniSpec spec = SmallSpec();
    spec.hooks = hooks;
    Store(spec);
    ExpectOneNow(code, rule, offset, level);
  }
  void ExpectOneNow(Code code, const std::string& rule, std::uint64_t offset,
                    VerifyLevel level = VerifyLevel::kStructure) {
    EXPECT_THAT(Check(level).violations, ElementsAre(Violates(code, rule, BlobPath(0), offset)));
  }
  void FlipByte(std::uint64_t offset) {
    container_.blob(0)[offset] ^= std::byte{0x10};
    StoreAgain();
  }
  const format::BlobSections& Sections() { return container_.blobs.at(0).sections; }
  std::uint64_t RecordAt(std::size_t i) { return Sections().records + i * format::kRecordSize; }
};

// A hook that changes record `i` of blob 0.
MiniHooks ChangeRecord(std::size_t i, std::function<void(ChunkRecord&)> change) {
  MiniHooks hooks;
  hooks.records = [i, change](int blob, std::vector<ChunkRecord>& records) {
    if (blob == 0) change(records[i]);
  };
  return hooks;
}

TEST_F(BlobViolations, HeaderMagic) {
  FlipByte(0);
  ExpectOneNow(Code::kCorrupt, "R-HDR-10", 0);
}

TEST_F(BlobViolations, HeaderDigest) {
  FlipByte(100);
  ExpectOneNow(Code::kCorrupt, "R-HDR-04", 40);
}

TEST_F(BlobViolations, HeaderOfAnotherBlob) {
  MiniHooks hooks;
  hooks.blob_header = [](int blob, format::FileHeader& header) {
    if (blob == 0) header.id = MiniSpec::MakeId<BlobId>(0x55);
  };
  ExpectOne(hooks, Code::kCorrupt, "R-HDR-08", 56);
}

TEST_F(BlobViolations, HeaderOfAnotherAttemptAndStepIsFine) {
  MiniSpec spec = SmallSpec();
  spec.hooks.blob_header = [](int blob, format::FileHeader& header) {
    if (blob != 0) return;
    header.attempt = MiniSpec::MakeId(0x55);
    header.step = 1;
  };
  Store(spec);
  EXPECT_EQ(Check().verdict, Verdict::kCommitted);
}

TEST_F(BlobViolations, HeaderWithoutAttemptIsFine) {
  MiniSpec spec = SmallSpec();
  spec.hooks.blob_header = [](int, format::FileHeader& header) { header.attempt = {}; };
  Store(spec);
  EXPECT_EQ(Check().verdict, Verdict::kCommitted);
}

TEST_F(BlobViolations, CompatFeatureThatTheIndexDoesNotHave) {
  MiniHooks hooks;
  hooks.blob_header = [](int blob, format::FileHeader& header) {
    if (blob == 0) header.features.compat = 4;
  };
  ExpectOne(hooks, Code::kCorrupt, "R-HDR-09", 24);
}

TEST_F(BlobViolations, HeaderThatTheTrailerDoesNotRepeat) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) trailer.header_digest = MiniSpec::MakeId<Digest>(1);
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-03", 40);
}

// The pin decides before the version does: forged bytes are corrupt and not unsupported.
TEST_F(BlobViolations, HeaderOfALaterVersionThatTheTrailerDoesNotPin) {
  internal::StoreLe(MutableByteSpan(container_.blob(0)), 12, std::uint32_t{9});
  ResealHeader(MutableByteSpan(container_.blob(0)).first(format::kHeaderSize));
  StoreAgain();
  ExpectOneNow(Code::kCorrupt, "R-BLB-03", 40);
}

TEST_F(BlobViolations, TrailerWithAReservedFieldThatTheIndexDoesNotPin) {
  const MutableByteSpan trailer = MutableByteSpan(container_.blob(0)).last(format::kTrailerSize);
  internal::StoreLe(trailer, 200, std::uint32_t{1});
  ResealTrailer(trailer);
  StoreAgain();
  ExpectOneNow(Code::kCorrupt, "R-BLB-03", Sections().trailer + 240);
}

TEST_F(BlobViolations, TrailerDigest) {
  FlipByte(Sections().trailer + 16);
  ExpectOneNow(Code::kCorrupt, "R-BLB-02", Sections().trailer + 240);
}

TEST_F(BlobViolations, TrailerThatTheIndexDoesNotPin) {
  MiniHooks hooks;
  hooks.pin = [](int blob, internal::metadata::BlobPin& pin) {
    if (blob == 0) pin.trailer_digest = MiniSpec::MakeId<Digest>(1);
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-03", Sections().trailer + 240);
}

TEST_F(BlobViolations, TrailerOfAnotherBlobId) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) trailer.blob = MiniSpec::MakeId<BlobId>(0x55);
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-03", Sections().trailer + 16);
}

TEST_F(BlobViolations, TrailerWithAnotherShardCount) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) ++trailer.shard_count;
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-03", Sections().trailer + 60);
}

TEST_F(BlobViolations, TrailerWithAnotherTableOffset) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) trailer.chunks_end += format::kSectionAlignment;
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-03", Sections().trailer + 48);
}

TEST_F(BlobViolations, TrailerWithAnotherRecordCount) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) ++trailer.record_count;
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-03", Sections().trailer + 56);
}

// A block more in front of the trailer, which index and marker count.
TEST_F(BlobViolations, TrailerWithAnotherFileSize) {
  constexpr std::uint64_t kBlock = 4096;
  MiniSpec spec = SmallSpec();
  spec.hooks.pin = [](int blob, internal::metadata::BlobPin& pin) {
    if (blob == 0) pin.file_size += kBlock;
  };
  spec.hooks.marker = [](format::Marker& marker) { marker.total_bytes += kBlock; };
  Store(spec);
  Bytes& file = container_.blob(0);
  file.insert(file.end() - format::kTrailerSize, kBlock, std::byte{0});
  StoreAgain();
  ExpectOneNow(Code::kCorrupt, "R-BLB-03", Sections().trailer + kBlock + 32);
}

TEST_F(BlobViolations, TrailerWithAnotherGroupListDigest) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) trailer.group_list_digest = MiniSpec::MakeId<Digest>(1);
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-03", Sections().trailer + 96);
}

TEST_F(BlobViolations, ManifestUpToTheLimitIsRead) {
  const auto bytes = ByteSpan(container_.blob(0)).subspan(Sections().trailer, 256);
  const auto check = [&](std::uint64_t limit) {
    VerifyOptions options{.storage = storage_};
    options.limits.manifest_size_max_bytes = limit;
    return Verify("ckpt", options).value();
  };
  std::uint64_t largest = format::DecodeTrailer(bytes).value().manifest_size;
  for (const auto& [number, blob] : container_.blobs) {
    const ByteSpan file(container_.blob(number));
    largest = std::max(largest, format::DecodeTrailer(file.last(256)).value().manifest_size);
  }
  EXPECT_EQ(check(largest).verdict, Verdict::kCommitted);
  const VerifyReport report = check(largest - 1);
  ASSERT_FALSE(report.violations.empty());
  EXPECT_EQ(report.violations[0].place().rule, "R-IDX-01");
  EXPECT_EQ(report.violations[0].code(), Code::kLimitExceeded);
}

TEST_F(BlobViolations, TrailerWithAnotherSumOfRawBytes) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) ++trailer.raw_bytes;
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-06", Sections().trailer + 88);
}

TEST_F(BlobViolations, GroupList) {
  FlipByte(Sections().table + 3);
  ExpectOneNow(Code::kCorrupt, "R-BLB-05", Sections().table);
}

TEST_F(BlobViolations, RecordGroup) {
  FlipByte(Sections().records + 70);
  ExpectOneNow(Code::kCorrupt, "R-BLB-05", Sections().records);
}

TEST_F(BlobViolations, RecordOfAnotherShard) {
  ExpectOne(ChangeRecord(1, [](ChunkRecord& record) { record.shard = 7; }), Code::kCorrupt,
            "R-REC-01", RecordAt(1) + 16);
}

TEST_F(BlobViolations, RecordOfAnotherChunk) {
  ExpectOne(ChangeRecord(2, [](ChunkRecord& record) { record.chunk = 0; }), Code::kCorrupt,
            "R-REC-01", RecordAt(2) + 20);
}

TEST_F(BlobViolations, RecordOfAnotherRawLength) {
  MiniHooks hooks = ChangeRecord(1, [](ChunkRecord& record) { --record.raw_size; });
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) ++trailer.raw_bytes;
  };
  ExpectOne(hooks, Code::kCorrupt, "R-REC-02", RecordAt(1) + 12);
}

TEST_F(BlobViolations, RecordOfACodedChunkThatDidNotShrink) {
  ExpectOne(ChangeRecord(1, [](ChunkRecord& r) { r.stored_size = r.raw_size; }), Code::kCorrupt,
            "R-REC-03", RecordAt(1) + 8);
}

TEST_F(BlobViolations, FirstShardNotBehindTheHeader) {
  ExpectOne(ChangeRecord(0, [](ChunkRecord& record) { record.offset += 64; }), Code::kCorrupt,
            "R-REC-04", RecordAt(0));
}

TEST_F(BlobViolations, ChunkNotBehindItsPredecessor) {
  ExpectOne(ChangeRecord(2, [](ChunkRecord& record) { record.offset += 1; }), Code::kCorrupt,
            "R-REC-04", RecordAt(2));
}

// The area ends in the same block, but not where the last chunk does.
TEST_F(BlobViolations, TrailerWithAnotherEndOfTheChunks) {
  MiniHooks hooks;
  hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 0) ++trailer.chunks_end;
  };
  ExpectOne(hooks, Code::kCorrupt, "R-BLB-04", Sections().trailer + 40);
}

// No trailer says where the area ends; the table does.
TEST_F(BlobViolations, RoomBehindTheLastChunkWithoutATrailer) {
  MiniSpec spec = SmallSpec();
  spec.hooks.chunk_area = [](int blob, Bytes& area) {
    if (blob == 0) area.resize(area.size() + format::kSectionAlignment);
  };
  Store(spec);
  FlipByte(Sections().trailer + 16);
  const std::size_t last = container_.blobs.at(0).records.size() - 1;
  EXPECT_THAT(Check(VerifyLevel::kStructure).violations,
              ::testing::UnorderedElementsAre(
                  Violates(Code::kCorrupt, "R-BLB-02", BlobPath(0), Sections().trailer + 240),
                  Violates(Code::kCorrupt, "R-REC-04", BlobPath(0), RecordAt(last))));
}

TEST_F(BlobViolations, ChunkBehindTheArea) {
  // Without a good predecessor only the end of the area bounds it.
  MiniSpec spec = SmallSpec();
  spec.hooks.records = [](int blob, std::vector<ChunkRecord>& records) {
    if (blob != 0) return;
    records[1].shard = 9;
    records[2].offset = std::uint64_t{1} << 40;
  };
  Store(spec);
  EXPECT_THAT(Check(VerifyLevel::kStructure).violations,
              ElementsAre(Violates(Code::kCorrupt, "R-REC-01", BlobPath(0), RecordAt(1) + 16),
                          Violates(Code::kCorrupt, "R-REC-04", BlobPath(0), RecordAt(2))));
}

// What is told of one chunk is not taken for the place of the next.
TEST_F(BlobViolations, ChunkBehindTheAreaBeforeAGoodOne) {
  MiniSpec spec = SmallSpec();
  spec.hooks.records = [](int blob, std::vector<ChunkRecord>& records) {
    if (blob != 0) return;
    records[0].shard = 9;
    records[1].offset = std::uint64_t{1} << 40;
  };
  Store(spec);
  EXPECT_THAT(Check(VerifyLevel::kStructure).violations,
              ElementsAre(Violates(Code::kCorrupt, "R-REC-01", BlobPath(0), RecordAt(0) + 16),
                          Violates(Code::kCorrupt, "R-REC-04", BlobPath(0), RecordAt(1))));
}

TEST_F(BlobViolations, LastChunkBeforeTheEndOfTheArea) {
  MiniSpec spec = SmallSpec();
  spec.hooks.chunk_area = [](int blob, Bytes& area) {
    if (blob == 0) area.resize(area.size() + 200);
  };
  Store(spec);
  ExpectOneNow(Code::kCorrupt, "R-REC-04", RecordAt(2));
}

TEST_F(BlobViolations, UnknownCodec) {
  MiniHooks hooks;
  hooks.record_bytes = [](int blob, Bytes& records) {
    if (blob == 0) internal::StoreLe(MutableByteSpan(records), 24, std::uint16_t{99});
  };
  ExpectOne(hooks, Code::kUnsupported, "R-COD-01", RecordAt(0) + 24);
}

TEST_F(BlobViolations, SourceBlob) {
  MiniHooks hooks;
  hooks.record_bytes = [](int blob, Bytes& records) {
    if (blob == 0) internal::StoreLe(MutableByteSpan(records), 28, std::uint32_t{1});
  };
  ExpectOne(hooks, Code::kUnsupported, "R-REC-05", RecordAt(0) + 28);
}

TEST_F(BlobViolations, PaddingBehindEachSection) {
  const format::BlobSections sections = Sections();
  const std::uint64_t offsets[] = {container_.blobs.at(0).chunks_end,
                                   sections.table - 1,
                                   sections.table + sections.group_list_size,
                                   sections.records - 1,
                                   sections.manifest_end,
                                   sections.trailer - 1};
  for (const std::uint64_t offset : offsets) {
    SCOPED_TRACE(offset);
    FlipByte(offset);
    ExpectOneNow(Code::kCorrupt, "R-BLB-08", offset);
    FlipByte(offset);
  }
}

TEST_F(BlobViolations, PaddingBetweenShardsIsCheckedAtFullLevel) {
  const std::vector<ChunkRecord>& records = container_.blobs.at(0).records;
  const std::uint64_t offset = records[0].offset + records[0].stored_size;
  ASSERT_LT(offset, records[1].offset);
  FlipByte(offset);
  EXPECT_EQ(Check(VerifyLevel::kStructure).verdict, Verdict::kCommitted);
  ExpectOneNow(Code::kCorrupt, "R-BLB-08", offset, VerifyLevel::kFull);
}

TEST_F(BlobViolations, DamageOfAllSectionsIsListedInTheOrderOfTheFile) {
  const format::BlobSections sections = Sections();
  const std::uint64_t chunk = container_.blobs.at(0).records[0].offset;
  for (const std::uint64_t offset : {std::uint64_t{100}, chunk, sections.manifest}) {
    FlipByte(offset);
  }
  const std::uint64_t manifest = container_.blobs.at(1).sections.manifest;
  container_.blob(1)[manifest] ^= std::byte{1};
  FlipByte(sections.manifest_end);
  // Not the manifest of blob 0: its header would say how it is read.
  for (const int threads : {1, 4}) {
    EXPECT_THAT(
        Check(VerifyLevel::kFull, threads).violations,
        ElementsAre(Violates(Code::kCorrupt, "R-HDR-04", BlobPath(0), 40),
                    Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), chunk),
                    Violates(Code::kCorrupt, "R-BLB-08", BlobPath(0), sections.manifest_end),
                    Violates(Code::kCorrupt, "R-BLB-06", BlobPath(1), manifest)));
  }
}

// 200 scalars: records of four groups.
MiniSpec ManyScalars() {
  MiniSpec spec;
  for (int i = 0; i < 200; ++i) {
    spec.tensors.push_back(CutTensor("t" + std::to_string(1000 + i), DType::kF64, {},
                                     NoiseBytes(static_cast<std::uint64_t>(i), 8),
                                     {Region::Whole({})}));
  }
  return spec;
}

TEST_F(BlobViolations, DamagedGroupHidesOnlyItsOwnChunks) {
  Store(ManyScalars());
  const std::vector<ChunkRecord> records = container_.blobs.at(0).records;
  for (const std::size_t i : {10u, 70u, 130u, 199u}) {
    container_.blob(0)[records[i].offset] ^= std::byte{1};
  }
  const std::uint64_t group = Sections().records + 4096;
  FlipByte(group + 40);
  const VerifyReport report = Check();
  EXPECT_THAT(report.violations,
              ElementsAre(Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), records[10].offset),
                          Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), records[130].offset),
                          Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), records[199].offset),
                          Violates(Code::kCorrupt, "R-BLB-05", BlobPath(0), group)));
  EXPECT_EQ(report.violations[1].place().tensor, "t1130");
}

// Groups are read a second time when their chunks are.
TEST_F(BlobViolations, EachViolationIsReportedOnceAsItIsFound) {
  Store(ManyScalars());
  FlipByte(Sections().records + 4096 + 40);
  const VerifyReport report = Check();
  std::vector<Status> found;
  const auto again = Verify("ckpt", {.storage = storage_, .on_violation = [&](const Status& one) {
                                       found.push_back(one);
                                     }});
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(found, report.violations);
  EXPECT_EQ(report.violation_count, 1u);
}

TEST_F(BlobViolations, ChunksAreCheckedWithoutTrailerAndManifest) {
  const std::uint64_t offset = container_.blobs.at(0).records[0].offset;
  FlipByte(Sections().trailer);
  FlipByte(offset);
  EXPECT_THAT(Check().violations,
              ElementsAre(Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), offset),
                          Violates(Code::kCorrupt, "R-BLB-02", BlobPath(0), Sections().trailer)));
}

}  // namespace
}  // namespace sealpoint::testing
