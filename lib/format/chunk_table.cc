// SPDX-License-Identifier: Apache-2.0
#include "lib/format/chunk_table.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal {
namespace {

// Offsets of the fields of a record, spec/container.md section 5.
constexpr std::size_t kOffsetAt = 0;
constexpr std::size_t kStoredSizeAt = 8;
constexpr std::size_t kRawSizeAt = 12;
constexpr std::size_t kShardAt = 16;
constexpr std::size_t kChunkAt = 20;
constexpr std::size_t kCodecAt = 24;
constexpr std::size_t kReservedAt = 26;
constexpr std::size_t kSourceBlobAt = 28;
constexpr std::size_t kRawDigestAt = 32;
constexpr std::size_t kStoredDigestAt = 48;
static_assert(kStoredDigestAt + kDigestSize == kRecordSize);

Result<Codec> DecodeCodec(ByteSpan bytes) {
  const auto value = LoadLe<std::uint16_t>(bytes, kCodecAt);
  switch (static_cast<Codec>(value)) {
    case Codec::kNone:
    case Codec::kZstd:
    case Codec::kByteSplitZstd:
      return static_cast<Codec>(value);
  }
  return RuleError(Code::kUnsupported, "R-COD-01", "codec ", value, " is not registered")
      .AtOffset(kCodecAt);
}

// R-REC-05.
Status CheckReserved(ByteSpan bytes) {
  if (LoadLe<std::uint16_t>(bytes, kReservedAt) != 0) {
    return RuleError(Code::kUnsupported, "R-REC-05", "the reserved field of a record is not zero")
        .AtOffset(kReservedAt);
  }
  if (const auto source = LoadLe<std::uint32_t>(bytes, kSourceBlobAt); source != 0) {
    return RuleError(Code::kUnsupported, "R-REC-05", "source blob ", source)
        .AtOffset(kSourceBlobAt);
  }
  return {};
}

// R-REC-03.
Status CheckSizes(const ChunkRecord& record) {
  if (record.codec != Codec::kNone) {
    // The raw length is what a reader must find memory for, however little is stored.
    if (record.raw_size > kCodedChunkSizeMaxBytes) {
      return RuleError(Code::kCorrupt, "R-REC-03", "a coded chunk of ", record.raw_size,
                       " bytes, at most ", kCodedChunkSizeMaxBytes)
          .AtOffset(kRawSizeAt);
    }
    if (record.stored_size > 0 && record.stored_size < record.raw_size) return {};
    return RuleError(Code::kCorrupt, "R-REC-03", "a coded chunk of ", record.raw_size,
                     " bytes has ", record.stored_size, " stored bytes")
        .AtOffset(kStoredSizeAt);
  }
  if (record.stored_size != record.raw_size) {
    return RuleError(Code::kCorrupt, "R-REC-03", "a plain chunk of ", record.raw_size,
                     " bytes has ", record.stored_size, " stored bytes")
        .AtOffset(kStoredSizeAt);
  }
  if (!record.stored_digest.is_zero()) {
    return RuleError(Code::kCorrupt, "R-REC-03", "a plain chunk has a stored digest")
        .AtOffset(kStoredDigestAt);
  }
  return {};
}

// One record of a run of records, and where it lies in that run.
struct PlacedRecord {
  const ChunkRecord& record;
  std::uint64_t at;
};

// R-REC-01 and R-REC-02 for one record of a shard.
Status CheckPosition(const ShardShape& shard, const PlacedRecord& placed, std::uint32_t ordinal,
                     std::uint64_t chunk) {
  const ChunkRecord& record = placed.record;
  if (record.shard != ordinal) {
    return RuleError(Code::kCorrupt, "R-REC-01", "record of shard ", record.shard,
                     " among those of ", ordinal)
        .AtOffset(placed.at + kShardAt);
  }
  if (record.chunk != chunk) {
    return RuleError(Code::kCorrupt, "R-REC-01", "chunk ", record.chunk, " where ", chunk,
                     " is due")
        .AtOffset(placed.at + kChunkAt);
  }
  if (chunk >= DivideRoundUp(shard.raw_size, shard.chunk_size)) {
    return RuleError(Code::kCorrupt, "R-REC-01", "chunk ", chunk, " lies behind the shard's end")
        .AtOffset(placed.at + kChunkAt);
  }
  // No overflow: the chunk begins within the shard.
  const std::uint64_t due = std::min(shard.chunk_size, shard.raw_size - chunk * shard.chunk_size);
  if (record.raw_size != due) {
    return RuleError(Code::kCorrupt, "R-REC-02", "chunk ", chunk, " has ", record.raw_size,
                     " raw bytes, not ", due)
        .AtOffset(placed.at + kRawSizeAt);
  }
  return {};
}

Status CheckStart(const ShardShape& shard, const PlacedRecord& placed) {
  const ChunkRecord& record = placed.record;
  const std::uint64_t alignment = ShardAlignment(shard.raw_size);
  if (record.offset >= kHeaderSize && record.offset % alignment == 0) return {};
  return RuleError(Code::kCorrupt, "R-REC-04", "a shard begins at ", record.offset,
                   ", not at a multiple of ", alignment, " behind the header")
      .AtOffset(placed.at + kOffsetAt);
}

Status CheckFollows(const ChunkRecord& before, const PlacedRecord& placed) {
  const ChunkRecord& record = placed.record;
  if (record.offset >= before.offset && record.offset - before.offset == before.stored_size) {
    return {};
  }
  return RuleError(Code::kCorrupt, "R-REC-04", "chunk ", record.chunk, " at ", record.offset,
                   " is not directly behind its predecessor")
      .AtOffset(placed.at + kOffsetAt);
}

}  // namespace

void EncodeRecord(const ChunkRecord& record, MutableByteSpan out) {
  SEALPOINT_CHECK(out.size() == kRecordSize);
  StoreLe(out, kOffsetAt, record.offset);
  StoreLe(out, kStoredSizeAt, record.stored_size);
  StoreLe(out, kRawSizeAt, record.raw_size);
  StoreLe(out, kShardAt, record.shard);
  StoreLe(out, kChunkAt, record.chunk);
  StoreLe(out, kCodecAt, static_cast<std::uint16_t>(record.codec));
  StoreLe(out, kReservedAt, std::uint16_t{0});
  StoreLe(out, kSourceBlobAt, std::uint32_t{0});
  StoreId(out, kRawDigestAt, record.raw_digest);
  StoreId(out, kStoredDigestAt, record.stored_digest);
}

Result<ChunkRecord> DecodeRecord(ByteSpan bytes) {
  SEALPOINT_CHECK(bytes.size() == kRecordSize);
  SEALPOINT_ASSIGN_OR_RETURN(const Codec codec, DecodeCodec(bytes));
  SEALPOINT_RETURN_IF_ERROR(CheckReserved(bytes));
  const ChunkRecord record{.offset = LoadLe<std::uint64_t>(bytes, kOffsetAt),
                           .stored_size = LoadLe<std::uint32_t>(bytes, kStoredSizeAt),
                           .raw_size = LoadLe<std::uint32_t>(bytes, kRawSizeAt),
                           .shard = LoadLe<std::uint32_t>(bytes, kShardAt),
                           .chunk = LoadLe<std::uint32_t>(bytes, kChunkAt),
                           .codec = codec,
                           .raw_digest = LoadId(bytes, kRawDigestAt),
                           .stored_digest = LoadId(bytes, kStoredDigestAt)};
  SEALPOINT_RETURN_IF_ERROR(CheckSizes(record));
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
    return RuleError(Code::kCorrupt, "R-BLB-05", "the group list has no group ", group_number)
        .AtOffset(group_list.size());
  }
  if (ComputeDigest(group) == LoadId(group_list, at)) return {};
  return RuleError(Code::kCorrupt, "R-BLB-05", "digest of record group ", group_number, " differs")
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

}  // namespace sealpoint::internal
