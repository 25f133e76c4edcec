// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/record_walker.h"

#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::verify {
namespace {

// Offsets of fields of a record, spec/container.md section 5.
constexpr std::uint64_t kOffsetAt = 0;
constexpr std::uint64_t kShardAt = 16;

}  // namespace

RecordWalker::RecordWalker(const ShardMap& map, std::size_t blob, std::uint64_t area_limit)
    : map_(&map),
      shards_(map.OfBlob(blob)),
      area_limit_(area_limit),
      last_end_(format::kHeaderSize) {}

RecordWalker::Due RecordWalker::Advance() {
  SEALPOINT_CHECK(shard_ < shards_.size());
  const ShardEntry& shard = shards_[shard_];
  const Due due{.shard = &shard, .ordinal = shard_, .chunk = chunk_, .shape = map_->ShapeOf(shard)};
  ++record_number_;
  ++chunk_;
  if (chunk_ == metadata::ChunkCount(due.shape.raw_size, due.shape.chunk_size)) {
    chunk_ = 0;
    ++shard_;
  }
  return due;
}

Result<WalkedChunk> RecordWalker::Next(ByteSpan record) {
  const std::optional<std::uint64_t> before = std::exchange(last_end_, std::nullopt);
  const Due due = Advance();
  Result<WalkedChunk> chunk = CheckRecord(due, record, before);
  if (!chunk) return map_->AtItemOf(*due.shard, std::move(chunk).error());
  last_end_ = chunk->end();
  return chunk;
}

Result<WalkedChunk> RecordWalker::CheckRecord(const Due& due, ByteSpan bytes,
                                              std::optional<std::uint64_t> before) const {
  SEALPOINT_ASSIGN_OR_RETURN(
      const format::ChunkRecord record,
      format::DecodeRecord(bytes, {.has_base = map_->index().base().has_value(),
                                   .is_object = map_->IsObject(*due.shard)}));
  if (record.shard != due.ordinal) {
    return RuleError(Code::kCorrupt, "R-REC-01", "record of shard ", record.shard,
                     ", expected shard ", due.ordinal)
        .AtOffset(kShardAt);
  }
  SEALPOINT_RETURN_IF_ERROR(format::CheckShardRecords(due.shape, due.chunk, std::span(&record, 1)));
  if (before) {
    const std::uint64_t alignment = due.chunk == 0 ? format::ShardAlignment(due.shape.raw_size) : 1;
    const std::uint64_t expected = AlignUp(*before, alignment);
    if (record.offset != expected) {
      return RuleError(Code::kCorrupt, "R-REC-04", "chunk at ", record.offset, ", expected ",
                       expected)
          .AtOffset(kOffsetAt);
    }
  }
  if (!RangeFits(record.offset, record.stored_size, area_limit_)) {
    return RuleError(Code::kCorrupt, "R-REC-04", "chunk of ", record.stored_size, " bytes at ",
                     record.offset, " ends after the chunk area")
        .AtOffset(kOffsetAt);
  }
  return WalkedChunk{.record = record, .shard = due.shard, .padding_begin = before};
}

void RecordWalker::Skip(std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) (void)Advance();
  if (count > 0) last_end_.reset();
}

}  // namespace sealpoint::internal::verify
