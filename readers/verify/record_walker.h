// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_RECORD_WALKER_H_
#define SEALPOINT_READERS_VERIFY_RECORD_WALKER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "lib/format/chunk_table.h"
#include "readers/verify/shard_map.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::verify {

// A chunk with an intact record.
struct WalkedChunk {
  format::ChunkRecord record;
  const ShardEntry* shard = nullptr;
  // End of the chunk before (or of the header): from there to the record's offset is padding.
  // Absent if the record before was not good.
  std::optional<std::uint64_t> padding_begin;

  std::uint64_t begin() const { return padding_begin.value_or(record.offset); }
  std::uint64_t end() const { return record.offset + record.stored_size; }
};

// Iterates over the records of one blob in order and checks each against the shards in the index.
// After a bad record it continues with the next one. A value: a copy continues from the same
// position.
class RecordWalker {
 public:
  // `area_limit`: no chunk ends after it. The map outlives the walker.
  RecordWalker(const ShardMap& map, std::size_t blob, std::uint64_t area_limit);

  // The next record: R-REC-01 to R-REC-05 and R-COD-01. Offsets of errors count from its first
  // byte; the tensor is set. Precondition: record_number() < the blob's record count.
  Result<WalkedChunk> Next(ByteSpan record);
  // Skips records with untrusted bytes; same precondition for each.
  void Skip(std::uint32_t count);

  std::uint32_t record_number() const { return record_number_; }
  // End of the last chunk, if its record was good.
  std::optional<std::uint64_t> last_end() const { return last_end_; }

 private:
  struct Due {
    const ShardEntry* shard = nullptr;
    std::uint32_t ordinal = 0;
    std::uint32_t chunk = 0;
    format::ShardShape shape;
  };
  Due Advance();
  Result<WalkedChunk> CheckRecord(const Due& due, ByteSpan bytes,
                                  std::optional<std::uint64_t> before) const;

  const ShardMap* map_;
  std::span<const ShardEntry> shards_;
  std::uint64_t area_limit_;
  std::uint32_t record_number_ = 0;
  std::uint32_t shard_ = 0;
  std::uint32_t chunk_ = 0;
  std::optional<std::uint64_t> last_end_;
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_RECORD_WALKER_H_
