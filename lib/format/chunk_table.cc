// SPDX-License-Identifier: Apache-2.0
#include "lib/format/chunk_table.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/fields.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal::format {
namespace {

Result<Codec> DecodeCodec(ByteSpan bytes, bool has_base) {
  const auto value = LoadLe<std::uint16_t>(bytes, RecordFields::kCodec.at);
  switch (static_cast<Codec>(value)) {
    case Codec::kNone:
    case Codec::kZstd:
    case Codec::kByteSplitZstd:
      return static_cast<Codec>(value);
    case Codec::kChanges:
      if (has_base) return Codec::kChanges;
      return RuleError(Code::kUnsupported, "R-DLT-08",
                       "codec is 4 (changes), and the index names no base")
          .AtOffset(RecordFields::kCodec.at);
  }
  return RuleError(Code::kUnsupported, "R-COD-01", "codec is ", value, ", which is not registered")
      .AtOffset(RecordFields::kCodec.at);
}

// R-REC-05.
Status CheckReserved(ByteSpan bytes) {
  if (const auto reserved = LoadLe<std::uint16_t>(bytes, RecordFields::kReserved.at);
      reserved != 0) {
    return RuleError(Code::kUnsupported, "R-REC-05", "reserved field of a record is ", reserved,
                     ", expected 0")
        .AtOffset(RecordFields::kReserved.at);
  }
  if (const auto source = LoadLe<std::uint32_t>(bytes, RecordFields::kSourceBlob.at); source != 0) {
    return RuleError(Code::kUnsupported, "R-REC-05", "source blob of a record is ", source,
                     ", expected 0")
        .AtOffset(RecordFields::kSourceBlob.at);
  }
  return {};
}

// R-REC-03, R-DLT-06.
Status CheckSizes(const ChunkRecord& record) {
  if (record.codec != Codec::kNone) {
    // A reader must find memory for the raw length, however few bytes are stored. Without this
    // limit a small hostile file could ask for 4 GiB per chunk (spec/decisions/0010).
    const std::string_view rule = record.codec == Codec::kChanges ? "R-DLT-06" : "R-REC-03";
    if (record.raw_size > kCodedChunkSizeMaxBytes) {
      return RuleError(Code::kCorrupt, rule, "compressed chunk has ", record.raw_size,
                       " raw bytes, the limit is ", kCodedChunkSizeMaxBytes)
          .AtOffset(RecordFields::kRawSize.at);
    }
    const bool may_be_empty = record.codec == Codec::kChanges;
    if ((record.stored_size > 0 || may_be_empty) && record.stored_size < record.raw_size) return {};
    return RuleError(Code::kCorrupt, rule, "compressed chunk has ", record.stored_size,
                     " stored bytes, expected ", may_be_empty ? "" : "at least 1 and ",
                     "fewer than its ", record.raw_size, " raw bytes")
        .AtOffset(RecordFields::kStoredSize.at);
  }
  if (record.stored_size != record.raw_size) {
    return RuleError(Code::kCorrupt, "R-REC-03", "uncompressed chunk has ", record.stored_size,
                     " stored bytes, expected its ", record.raw_size, " raw bytes")
        .AtOffset(RecordFields::kStoredSize.at);
  }
  if (!record.stored_digest.is_zero()) {
    return RuleError(Code::kCorrupt, "R-REC-03", "uncompressed chunk has stored digest ",
                     record.stored_digest.ToHex(), ", expected zero")
        .AtOffset(RecordFields::kStoredDigest.at);
  }
  return {};
}

// A record and its byte offset in the sequence of records being checked.
struct PlacedRecord {
  const ChunkRecord& record;
  std::uint64_t at;
};

// R-REC-01 and R-REC-02 for one record of a shard.
Status CheckPosition(const ShardShape& shard, const PlacedRecord& placed, std::uint32_t ordinal,
                     std::uint64_t chunk) {
  const ChunkRecord& record = placed.record;
  if (record.shard != ordinal) {
    return RuleError(Code::kCorrupt, "R-REC-01", "record belongs to shard ", record.shard,
                     ", expected ", ordinal)
        .AtOffset(placed.at + RecordFields::kShard.at);
  }
  if (record.chunk != chunk) {
    return RuleError(Code::kCorrupt, "R-REC-01", "chunk number is ", record.chunk, ", expected ",
                     chunk)
        .AtOffset(placed.at + RecordFields::kChunk.at);
  }
  const std::uint64_t chunk_count = DivideRoundUp(shard.raw_size, shard.chunk_size);
  if (chunk >= chunk_count) {
    return RuleError(Code::kCorrupt, "R-REC-01", "chunk number is ", chunk,
                     ", but the shard has only ", chunk_count, " chunks")
        .AtOffset(placed.at + RecordFields::kChunk.at);
  }
  // No overflow, because the check above found that the chunk begins within the shard.
  const std::uint64_t expected =
      std::min(shard.chunk_size, shard.raw_size - chunk * shard.chunk_size);
  if (record.raw_size != expected) {
    return RuleError(Code::kCorrupt, "R-REC-02", "chunk ", chunk, " has ", record.raw_size,
                     " raw bytes, expected ", expected)
        .AtOffset(placed.at + RecordFields::kRawSize.at);
  }
  return {};
}

Status CheckStart(const ShardShape& shard, const PlacedRecord& placed) {
  const ChunkRecord& record = placed.record;
  const std::uint64_t alignment = ShardAlignment(shard.raw_size);
  if (record.offset >= kHeaderSize && record.offset % alignment == 0) return {};
  return RuleError(Code::kCorrupt, "R-REC-04", "shard begins at ", record.offset,
                   ", expected a multiple of ", alignment, " from ", kHeaderSize, " on")
      .AtOffset(placed.at + RecordFields::kOffset.at);
}

// Compares a difference and not a sum, since before.offset + before.stored_size may overflow.
Status CheckFollows(const ChunkRecord& before, const PlacedRecord& placed) {
  const ChunkRecord& record = placed.record;
  if (record.offset >= before.offset && record.offset - before.offset == before.stored_size) {
    return {};
  }
  return RuleError(Code::kCorrupt, "R-REC-04", "chunk ", record.chunk, " begins at ", record.offset,
                   ", expected the end of the chunk before it at ", before.offset, " + ",
                   before.stored_size)
      .AtOffset(placed.at + RecordFields::kOffset.at);
}

}  // namespace

void EncodeRecord(const ChunkRecord& record, MutableByteSpan out) {
  SEALPOINT_CHECK(out.size() == kRecordSize);
  StoreLe(out, RecordFields::kOffset.at, record.offset);
  StoreLe(out, RecordFields::kStoredSize.at, record.stored_size);
  StoreLe(out, RecordFields::kRawSize.at, record.raw_size);
  StoreLe(out, RecordFields::kShard.at, record.shard);
  StoreLe(out, RecordFields::kChunk.at, record.chunk);
  StoreLe(out, RecordFields::kCodec.at, static_cast<std::uint16_t>(record.codec));
  StoreLe(out, RecordFields::kReserved.at, std::uint16_t{0});
  StoreLe(out, RecordFields::kSourceBlob.at, std::uint32_t{0});
  StoreId(out, RecordFields::kRawDigest.at, record.raw_digest);
  StoreId(out, RecordFields::kStoredDigest.at, record.stored_digest);
}

void SetRawDigest(MutableByteSpan record, const Digest& digest) {
  SEALPOINT_CHECK(record.size() == kRecordSize);
  StoreId(record, RecordFields::kRawDigest.at, digest);
}

Result<ChunkRecord> DecodeRecord(ByteSpan bytes, const RecordOwner& owner) {
  SEALPOINT_CHECK(bytes.size() == kRecordSize);
  SEALPOINT_ASSIGN_OR_RETURN(const Codec codec, DecodeCodec(bytes, owner.has_base));
  SEALPOINT_RETURN_IF_ERROR(CheckReserved(bytes));
  const ChunkRecord record{
      .offset = LoadLe<std::uint64_t>(bytes, RecordFields::kOffset.at),
      .stored_size = LoadLe<std::uint32_t>(bytes, RecordFields::kStoredSize.at),
      .raw_size = LoadLe<std::uint32_t>(bytes, RecordFields::kRawSize.at),
      .shard = LoadLe<std::uint32_t>(bytes, RecordFields::kShard.at),
      .chunk = LoadLe<std::uint32_t>(bytes, RecordFields::kChunk.at),
      .codec = codec,
      .raw_digest = LoadId<Digest>(bytes, RecordFields::kRawDigest.at),
      .stored_digest = LoadId<Digest>(bytes, RecordFields::kStoredDigest.at)};
  SEALPOINT_RETURN_IF_ERROR(CheckSizes(record));
  if (codec == Codec::kChanges && owner.is_object) {
    return RuleError(Code::kCorrupt, "R-DLT-06",
                     "codec is 4 (changes), and the chunk is one of an object")
        .AtOffset(RecordFields::kCodec.at);
  }
  return record;
}

Bytes EncodeGroupList(ByteSpan records) {
  SEALPOINT_CHECK(records.size() % kRecordSize == 0);
  Bytes list(DivideRoundUp(records.size(), kRecordGroupSize) * kDigestSize);
  for (std::size_t at = 0; !records.empty(); at += kDigestSize) {
    const ByteSpan group = records.first(std::min(kRecordGroupSize, records.size()));
    StoreId(list, at, ComputeDigest(group));
    records = records.subspan(group.size());
  }
  return list;
}

Status CheckGroup(ByteSpan group_list, std::uint32_t group_number, ByteSpan group) {
  const std::uint64_t at = std::uint64_t{group_number} * kDigestSize;
  if (!RangeFits(at, kDigestSize, group_list.size())) {
    return RuleError(Code::kCorrupt, "R-BLB-05", "record group ", group_number,
                     " is beyond the group list of ", group_list.size() / kDigestSize, " groups")
        .AtOffset(group_list.size());
  }
  const Digest computed = ComputeDigest(group);
  const Digest recorded = LoadId<Digest>(group_list, at);
  if (computed == recorded) return {};
  return DigestError("R-BLB-05", StrCat("record group ", group_number), computed, recorded)
      .AtOffset(at);
}

Status CheckShardRecords(const ShardShape& shard, std::uint32_t first_chunk,
                         std::span<const ChunkRecord> records) {
  SEALPOINT_CHECK(shard.chunk_size > 0);
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::uint64_t chunk = first_chunk + std::uint64_t{i};
    const PlacedRecord placed{.record = records[i], .at = i * kRecordSize};
    SEALPOINT_RETURN_IF_ERROR(CheckPosition(shard, placed, records.front().shard, chunk));
    if (i > 0) SEALPOINT_RETURN_IF_ERROR(CheckFollows(records[i - 1], placed));
    if (chunk == 0) SEALPOINT_RETURN_IF_ERROR(CheckStart(shard, placed));
  }
  return {};
}

}  // namespace sealpoint::internal::format
