// SPDX-License-Identifier: Apache-2.0
#include "lib/format/chunk_table.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <vector>

#include "lib/base/endian.h"
#include "sealpoint/limits.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/rule_matchers.h"

namespace sealpoint::internal::format {
namespace {

using sealpoint::testing::BreaksRule;
using sealpoint::testing::FlipBit;
using sealpoint::testing::ResealGroup;

using RecordBytes = std::array<std::byte, kRecordSize>;

ChunkRecord Coded() {
  return {.offset = 0x1122334455667788,
          .stored_size = 1000,
          .raw_size = 4096,
          .shard = 5,
          .chunk = 6,
          .codec = Codec::kByteSplitZstd,
          .raw_digest = Digest::FromHex("000102030405060708090a0b0c0d0e0f").value(),
          .stored_digest = Digest::FromHex("101112131415161718191a1b1c1d1e1f").value()};
}

ChunkRecord Plain() {
  ChunkRecord record = Coded();
  record.codec = Codec::kNone;
  record.stored_size = record.raw_size;
  record.stored_digest = {};
  return record;
}

RecordBytes Encoded(const ChunkRecord& record) {
  RecordBytes bytes{};
  EncodeRecord(record, bytes);
  return bytes;
}

template <typename T>
Status StatusWith(const ChunkRecord& record, std::size_t offset, T value) {
  RecordBytes bytes = Encoded(record);
  StoreLe(bytes, offset, value);
  return DecodeRecord(bytes).status();
}

TEST(Record, ReadsBackWhatWasWritten) {
  EXPECT_EQ(DecodeRecord(Encoded(Coded())).value(), Coded());
  EXPECT_EQ(DecodeRecord(Encoded(Plain())).value(), Plain());
}

TEST(Record, LiesAsTheSpecificationSays) {
  const ChunkRecord record = Coded();
  RecordBytes bytes;
  bytes.fill(std::byte{0xa5});
  EncodeRecord(record, bytes);
  EXPECT_EQ(LoadLe<std::uint64_t>(bytes, 0), record.offset);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 8), 1000u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 12), 4096u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 16), 5u);
  EXPECT_EQ(LoadLe<std::uint32_t>(bytes, 20), 6u);
  EXPECT_EQ(LoadLe<std::uint16_t>(bytes, 24), 2u);
  EXPECT_TRUE(AllZero(ByteSpan(bytes).subspan(26, 6)));
  EXPECT_EQ(LoadId<Id128>(bytes, 32), record.raw_digest);
  EXPECT_EQ(LoadId<Id128>(bytes, 48), record.stored_digest);
}

TEST(Record, DoesNotSupportAnUnknownCodec) {
  for (const std::uint16_t codec : {std::uint16_t{3}, std::uint16_t{0xffff}}) {
    EXPECT_THAT(StatusWith(Coded(), 24, codec), BreaksRule(Code::kUnsupported, "R-COD-01", 24));
  }
}

TEST(Record, RejectsAPlainChunkOfAnotherStoredLength) {
  for (const std::uint32_t size : {4095u, 4097u, 0u}) {
    EXPECT_THAT(StatusWith(Plain(), 8, size), BreaksRule(Code::kCorrupt, "R-REC-03", 8)) << size;
  }
}

TEST(Record, RejectsAPlainChunkWithAStoredDigest) {
  EXPECT_THAT(StatusWith(Plain(), 63, std::uint8_t{1}), BreaksRule(Code::kCorrupt, "R-REC-03", 48));
}

TEST(Record, RejectsACodedChunkThatIsNotSmaller) {
  for (const std::uint32_t size : {4096u, 5000u}) {
    EXPECT_THAT(StatusWith(Coded(), 8, size), BreaksRule(Code::kCorrupt, "R-REC-03", 8)) << size;
  }
  EXPECT_TRUE(StatusWith(Coded(), 8, std::uint32_t{4095}).ok());
}

TEST(Record, RejectsACodedChunkWithoutBytes) {
  EXPECT_THAT(StatusWith(Coded(), 8, std::uint32_t{0}), BreaksRule(Code::kCorrupt, "R-REC-03", 8));
}

TEST(Record, DoesNotSupportANonZeroReservedField) {
  EXPECT_THAT(StatusWith(Plain(), 26, std::uint8_t{1}),
              BreaksRule(Code::kUnsupported, "R-REC-05", 26));
  EXPECT_THAT(StatusWith(Plain(), 27, std::uint8_t{1}),
              BreaksRule(Code::kUnsupported, "R-REC-05", 26));
}

TEST(Record, DoesNotSupportAnotherSourceBlob) {
  EXPECT_THAT(StatusWith(Plain(), 28, std::uint32_t{1}),
              BreaksRule(Code::kUnsupported, "R-REC-05", 28));
}

// `count` distinct records, encoded.
Bytes Table(std::uint32_t count) {
  Bytes bytes(count * kRecordSize);
  for (std::uint32_t i = 0; i < count; ++i) {
    ChunkRecord record = Plain();
    record.chunk = i;
    EncodeRecord(record, MutableByteSpan(bytes).subspan(i * kRecordSize, kRecordSize));
  }
  return bytes;
}

ByteSpan Group(ByteSpan table, std::size_t number) {
  const ByteSpan rest = table.subspan(number * 4096);
  return rest.first(std::min<std::size_t>(4096, rest.size()));
}

TEST(GroupCount, RoundsUp) {
  EXPECT_EQ(GroupCount(0), 0u);
  EXPECT_EQ(GroupCount(1), 1u);
  EXPECT_EQ(GroupCount(64), 1u);
  EXPECT_EQ(GroupCount(65), 2u);
  EXPECT_EQ(GroupCount(std::numeric_limits<std::uint32_t>::max()), 1u << 26);
}

TEST(GroupList, HasOneDigestPerGroup) {
  for (const std::uint32_t count : {0u, 1u, 64u, 65u, 128u, 130u}) {
    const Bytes table = Table(count);
    const Bytes list = EncodeGroupList(table);
    ASSERT_EQ(list.size(), GroupCount(count) * kDigestSize);
    Bytes expected(list.size());
    for (std::uint32_t group = 0; group < GroupCount(count); ++group) {
      ResealGroup(table, group, expected);
      EXPECT_TRUE(CheckGroup(list, group, Group(table, group)).ok());
    }
    EXPECT_EQ(list, expected);
  }
}

TEST(GroupList, RejectsEverySingleFlippedBitOfARecord) {
  Bytes table = Table(66);
  const Bytes list = EncodeGroupList(table);
  for (std::size_t bit = 0; bit < 8 * kRecordSize; ++bit) {
    const std::size_t bit_of_last = 8 * (table.size() - kRecordSize) + bit;
    FlipBit(table, bit_of_last);
    EXPECT_THAT(CheckGroup(list, 1, Group(table, 1)), BreaksRule(Code::kCorrupt, "R-BLB-05", 16))
        << bit;
    FlipBit(table, bit_of_last);
  }
  EXPECT_TRUE(CheckGroup(list, 1, Group(table, 1)).ok());
}

TEST(GroupList, RejectsTheRecordsOfAnotherGroup) {
  const Bytes table = Table(130);
  const Bytes list = EncodeGroupList(table);
  EXPECT_THAT(CheckGroup(list, 1, Group(table, 0)), BreaksRule(Code::kCorrupt, "R-BLB-05", 16));
}

TEST(GroupList, RejectsAGroupWithoutItsLastRecord) {
  const Bytes table = Table(64);
  const Bytes list = EncodeGroupList(table);
  EXPECT_THAT(CheckGroup(list, 0, ByteSpan(table).first(63 * kRecordSize)),
              BreaksRule(Code::kCorrupt, "R-BLB-05", 0));
}

TEST(GroupList, RejectsAGroupBehindItsEnd) {
  const Bytes table = Table(65);
  const Bytes list = EncodeGroupList(table);
  for (const std::uint32_t group : {2u, std::numeric_limits<std::uint32_t>::max()}) {
    EXPECT_THAT(CheckGroup(list, group, Group(table, 0)),
                BreaksRule(Code::kCorrupt, "R-BLB-05", 32));
  }
}

// A shard of 70000 bytes in chunks of 32768: two full ones and a rest of 4464.
constexpr ShardShape kShard{.raw_size = 70000, .chunk_size = 32768};

std::vector<ChunkRecord> ShardRecords() {
  std::vector<ChunkRecord> records(3, Plain());
  std::uint64_t offset = 8192;
  for (std::uint32_t i = 0; i < records.size(); ++i) {
    records[i].shard = 9;
    records[i].chunk = i;
    records[i].offset = offset;
    records[i].raw_size = i < 2 ? 32768 : 4464;
    records[i].stored_size = records[i].raw_size;
    offset += records[i].stored_size;
  }
  return records;
}

Status CheckAll(const std::vector<ChunkRecord>& records) {
  return CheckShardRecords(kShard, 0, records);
}

TEST(ShardRecords, AcceptTheWholeShardAndEveryPart) {
  const std::vector<ChunkRecord> records = ShardRecords();
  for (std::uint32_t first = 0; first < 3; ++first) {
    for (std::size_t count = 0; count <= 3 - first; ++count) {
      const std::span<const ChunkRecord> part(records.data() + first, count);
      const Status status = CheckShardRecords(kShard, first, part);
      EXPECT_TRUE(status.ok()) << first << " " << count << " " << status.ToString();
    }
  }
}

TEST(ShardRecords, AcceptCodedChunksBackToBack) {
  std::vector<ChunkRecord> records = ShardRecords();
  records[0].codec = Codec::kZstd;
  records[0].stored_size = 100;
  records[1].offset = records[0].offset + 100;
  records[2].offset = records[1].offset + 32768;
  EXPECT_TRUE(CheckAll(records).ok());
}

TEST(ShardRecords, RejectARecordOfAnotherShard) {
  std::vector<ChunkRecord> records = ShardRecords();
  records[2].shard = 10;
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-01", 2 * 64 + 16));
}

TEST(ShardRecords, RejectAChunkNumberOutOfTurn) {
  std::vector<ChunkRecord> records = ShardRecords();
  std::swap(records[1], records[2]);
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-01", 64 + 20));
}

TEST(ShardRecords, RejectAPartThatBeginsElsewhere) {
  EXPECT_THAT(CheckShardRecords(kShard, 1, ShardRecords()),
              BreaksRule(Code::kCorrupt, "R-REC-01", 20));
}

TEST(ShardRecords, RejectAChunkBehindTheEndOfTheShard) {
  std::vector<ChunkRecord> records = ShardRecords();
  records.push_back(records.back());
  records.back().chunk = 3;
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-01", 3 * 64 + 20));
}

TEST(ShardRecords, RejectAChunkBehindTheEndOfAShardOfWholeChunks) {
  std::vector<ChunkRecord> records = ShardRecords();
  EXPECT_THAT(CheckShardRecords({.raw_size = 65536, .chunk_size = 32768}, 0, records),
              BreaksRule(Code::kCorrupt, "R-REC-01", 2 * 64 + 20));
}

TEST(ShardRecords, RejectAnotherRawLengthOfAFullChunk) {
  std::vector<ChunkRecord> records = ShardRecords();
  records[0].raw_size = 32767;
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-02", 12));
}

TEST(ShardRecords, RejectAnotherRawLengthOfTheLastChunk) {
  for (const std::uint32_t size : {4463u, 4465u, 32768u, 0u}) {
    std::vector<ChunkRecord> records = ShardRecords();
    records[2].raw_size = size;
    EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-02", 2 * 64 + 12)) << size;
  }
}

TEST(ShardRecords, RejectAGapBetweenChunks) {
  std::vector<ChunkRecord> records = ShardRecords();
  records[1].offset += 64;
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-04", 64));
}

TEST(ShardRecords, RejectAnOverlapOfChunks) {
  std::vector<ChunkRecord> records = ShardRecords();
  records[2].offset -= 1;
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-04", 2 * 64));
}

TEST(ShardRecords, RejectAnOffsetThatWrapsAround) {
  std::vector<ChunkRecord> records = ShardRecords();
  records[0].offset = std::uint64_t{0} - 4096;
  records[1].offset = records[0].offset + records[0].stored_size;
  records[2].offset = records[1].offset + records[1].stored_size;
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-04", 64));
}

TEST(ShardRecords, RejectALargeShardThatBeginsWithinAPage) {
  std::vector<ChunkRecord> records = ShardRecords();
  records[0].offset += 64;
  records.resize(1);
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-04", 0));
}

TEST(ShardRecords, AcceptASmallShardAtAMultipleOf64Only) {
  std::vector<ChunkRecord> records(1, ShardRecords().back());
  records[0].chunk = 0;
  const ShardShape small{.raw_size = 4464, .chunk_size = 32768};
  records[0].offset = 192;
  EXPECT_TRUE(CheckShardRecords(small, 0, records).ok());
  records[0].offset = 200;
  EXPECT_THAT(CheckShardRecords(small, 0, records), BreaksRule(Code::kCorrupt, "R-REC-04", 0));
}

TEST(ShardRecords, AcceptASmallShardDirectlyBehindTheHeader) {
  std::vector<ChunkRecord> records(1, ShardRecords().back());
  records[0].chunk = 0;
  records[0].offset = 128;
  EXPECT_TRUE(CheckShardRecords({.raw_size = 4464, .chunk_size = 32768}, 0, records).ok());
}

TEST(ShardRecords, RejectAShardThatBeginsInTheHeader) {
  std::vector<ChunkRecord> records = ShardRecords();
  records.resize(1);
  records[0].offset = 0;
  EXPECT_THAT(CheckAll(records), BreaksRule(Code::kCorrupt, "R-REC-04", 0));
}

TEST(Record, ChangesMayStoreNothing) {
  ChunkRecord record = Coded();
  record.codec = Codec::kChanges;
  record.stored_size = 0;
  EXPECT_EQ(DecodeRecord(Encoded(record)).value(), record);
  EXPECT_THAT(DecodeRecord(Encoded(record), {.is_object = true}).status(),
              BreaksRule(Code::kCorrupt, "R-DLT-06", RecordFields::kCodec.at));
  record.stored_size = record.raw_size;
  EXPECT_EQ(DecodeRecord(Encoded(record)).error().place().rule, "R-DLT-06");
  record.stored_size = 0;
  record.raw_size = kCodedChunkSizeMaxBytes + 1;
  EXPECT_EQ(DecodeRecord(Encoded(record)).error().place().rule, "R-DLT-06");
}

TEST(Record, ChangesNeedTheirFeature) {
  ChunkRecord record = Coded();
  EXPECT_TRUE(DecodeRecord(Encoded(record), {.has_base = false}).ok());
  record.codec = Codec::kChanges;
  const auto refused = [&record] {
    return DecodeRecord(Encoded(record), {.has_base = false, .is_object = true}).status();
  };
  const auto needs_it = BreaksRule(Code::kUnsupported, "R-DLT-08", RecordFields::kCodec.at);
  EXPECT_THAT(refused(), needs_it);
  // Before R-DLT-06.
  record.stored_size = record.raw_size;
  EXPECT_THAT(refused(), needs_it);
}

}  // namespace
}  // namespace sealpoint::internal::format
