// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FORMAT_CHUNK_TABLE_H_
#define SEALPOINT_LIB_FORMAT_CHUNK_TABLE_H_

#include <cstdint>
#include <span>

#include "lib/format/constants.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/dtype.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::format {

struct ChunkRecord {
  std::uint64_t offset = 0;  // in the blob
  std::uint32_t stored_size = 0;
  std::uint32_t raw_size = 0;
  std::uint32_t shard = 0;  // ordinal in the blob
  std::uint32_t chunk = 0;  // number in the shard
  Codec codec = Codec::kNone;
  Digest raw_digest{};
  Digest stored_digest{};  // zero if the codec is kNone
  friend bool operator==(const ChunkRecord&, const ChunkRecord&) = default;
};

void EncodeRecord(const ChunkRecord& record, MutableByteSpan out);  // kRecordSize bytes

// Puts the digest of the raw bytes into an encoded record.
void SetRawDigest(MutableByteSpan record, const Digest& digest);

// What the index says of a record's chunk. Only a tensor of a delta has changes.
struct RecordOwner {
  bool has_base = true;
  bool is_object = false;
};

// Checks a single record: R-COD-01 or R-DLT-08, R-REC-05, R-REC-03 or R-DLT-06. Precondition:
// kRecordSize bytes.
Result<ChunkRecord> DecodeRecord(ByteSpan bytes, const RecordOwner& owner = {});

constexpr std::uint32_t GroupCount(std::uint32_t record_count) {
  return record_count / kRecordsPerGroup + (record_count % kRecordsPerGroup != 0 ? 1 : 0);
}

// The group list of encoded records (a multiple of kRecordSize bytes).
Bytes EncodeGroupList(ByteSpan records);

// Checks R-BLB-05 for one group. `group` holds its record bytes. Precondition: `group_list` was
// verified against the digest in the index; otherwise this check proves nothing.
Status CheckGroup(ByteSpan group_list, std::uint32_t group_number, ByteSpan group);

// Checks the records of one shard: R-REC-01, R-REC-02, and the offsets of R-REC-04 within the
// shard, given the shard's raw size and chunk size (> 0) from the index. `records` are all records
// of the shard or a range of them that begins at chunk `first_chunk`. Offsets in errors count from
// the first of these records.
struct ShardShape {
  std::uint64_t raw_size = 0;
  std::uint64_t chunk_size = 0;
};
Status CheckShardRecords(const ShardShape& shard, std::uint32_t first_chunk,
                         std::span<const ChunkRecord> records);

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_CHUNK_TABLE_H_
