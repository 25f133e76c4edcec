// SPDX-License-Identifier: Apache-2.0
//
// Damage of the chunks themselves, plain and coded.
#include <vector>

#include "tests/unit/verify/verify_fixture.h"

namespace sealpoint::testing {
namespace {

using internal::format::ChunkRecord;
using ::testing::ElementsAre;

class ChunkViolations : public VerifyFixture {
 protected:
  void SetUp() override {
    Store(SmallSpec());
    // Blob 0 holds a plain chunk of "grid", then the two coded chunks of "coded".
    ASSERT_EQ(container_.blobs.at(0).records.size(), 3u);
  }
  const ChunkRecord& Record(std::size_t i) { return container_.blobs.at(0).records[i]; }
  void FlipByte(std::uint64_t offset) {
    container_.blob(0)[offset] ^= std::byte{0x10};
    StoreAgain();
  }
  void ExpectOne(const std::string& rule, std::size_t record, const std::string& tensor) {
    const VerifyReport report = Check();
    EXPECT_EQ(report.verdict, Verdict::kCorrupt);
    EXPECT_THAT(report.violations,
                ElementsAre(Violates(Code::kCorrupt, rule, BlobPath(0), Record(record).offset)));
    EXPECT_EQ(report.violations.front().place().tensor, tensor);
    EXPECT_EQ(Check(VerifyLevel::kStructure).verdict, Verdict::kCommitted);
  }
  void ChangeRecords(std::function<void(std::vector<ChunkRecord>&)> change) {
    MiniSpec spec = SmallSpec();
    spec.hooks.records = [change](int blob, std::vector<ChunkRecord>& records) {
      if (blob == 0) change(records);
    };
    Store(spec);
  }
};

TEST_F(ChunkViolations, PlainChunk) {
  FlipByte(Record(0).offset + 3);
  ExpectOne("R-CHK-02", 0, "grid");
}

TEST_F(ChunkViolations, CodedChunk) {
  FlipByte(Record(1).offset + 3);
  ExpectOne("R-CHK-01", 1, "coded");
}

TEST_F(ChunkViolations, LastCodedChunk) {
  FlipByte(Record(2).offset + Record(2).stored_size - 1);
  ExpectOne("R-CHK-01", 2, "coded");
}

TEST_F(ChunkViolations, DecodedBytesWithAnotherDigest) {
  ChangeRecords(
      [](std::vector<ChunkRecord>& records) { records[1].raw_digest.bytes[0] ^= std::byte{1}; });
  ExpectOne("R-CHK-02", 1, "coded");
}

TEST_F(ChunkViolations, StoredBytesThatAreNoFrame) {
  MiniSpec spec = SmallSpec();
  Bytes stored;
  spec.hooks.chunk_area = [&](int blob, Bytes& area) {
    if (blob != 0) return;
    area[Record(1).offset] ^= std::byte{1};
    const auto begin = area.begin() + static_cast<std::ptrdiff_t>(Record(1).offset);
    stored.assign(begin, begin + Record(1).stored_size);
  };
  spec.hooks.records = [&](int blob, std::vector<ChunkRecord>& records) {
    if (blob == 0) records[1].stored_digest = ComputeDigest(stored);
  };
  Store(spec);
  ExpectOne("R-COD-02", 1, "coded");
}

TEST_F(ChunkViolations, ObjectIsNamed) {
  const MiniBlob& blob = container_.blobs.at(1);
  const std::uint64_t offset = blob.records.back().offset;
  container_.blob(1)[offset] ^= std::byte{1};
  StoreAgain();
  const VerifyReport report = Check();
  EXPECT_THAT(report.violations,
              ElementsAre(Violates(Code::kCorrupt, "R-CHK-02", BlobPath(1), offset)));
  EXPECT_EQ(report.violations.front().place().object, "rng");
}

TEST_F(ChunkViolations, EachDamagedChunkIsListed) {
  for (const std::size_t i : {0u, 1u, 2u}) FlipByte(Record(i).offset);
  EXPECT_THAT(Check().violations,
              ElementsAre(Violates(Code::kCorrupt, "R-CHK-02", BlobPath(0), Record(0).offset),
                          Violates(Code::kCorrupt, "R-CHK-01", BlobPath(0), Record(1).offset),
                          Violates(Code::kCorrupt, "R-CHK-01", BlobPath(0), Record(2).offset)));
}

TEST_F(ChunkViolations, ChunkOfABadRecordIsNotCheckedButItsNeighboursAre) {
  ChangeRecords([](std::vector<ChunkRecord>& records) { records[1].chunk = 5; });
  FlipByte(Record(1).offset);
  FlipByte(Record(2).offset);
  EXPECT_THAT(Check().violations,
              ElementsAre(Violates(Code::kCorrupt, "R-CHK-01", BlobPath(0), Record(2).offset),
                          Violates(Code::kCorrupt, "R-REC-01", BlobPath(0),
                                   container_.blobs.at(0).sections.records + 64 + 20)));
}

}  // namespace
}  // namespace sealpoint::testing
