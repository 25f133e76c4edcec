// SPDX-License-Identifier: Apache-2.0
#include "lib/container/blob_tables.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/rebase.h"
#include "lib/container/resize.h"
#include "lib/format/constants.h"
#include "lib/format/trailer.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::container {
namespace {

constexpr std::uint64_t kCacheMaxBytes = 8 * kMiB;
constexpr std::uint32_t kGroupsPerRead = 256;  // 1 MiB

// Keys of the cache: the group list of a blob, and its groups.
std::uint64_t ListKey(std::uint32_t blob) { return std::uint64_t{blob} << 32; }
std::uint64_t GroupKey(std::uint32_t blob, std::uint32_t group) {
  return ListKey(blob) + group + 1;  // fits: at most 2^26 groups
}

// R-REC-04 as far as it can be checked without the shard's neighbours.
Status CheckInChunkArea(const metadata::BlobPin& pin, const format::ChunkRecord& record) {
  if (record.offset >= format::kHeaderSize &&
      RangeFits(record.offset, record.stored_size, pin.table_offset)) {
    return {};
  }
  return RuleError(Code::kCorrupt, "R-REC-04", "chunk ", record.chunk, " of ", record.stored_size,
                   " bytes at ", record.offset, " leaves the chunk area");
}

}  // namespace

BlobTables::BlobTables(const Directory& directory, const metadata::Metadata& index)
    : directory_(directory),
      index_(index),
      has_base_(index.base().has_value()),
      files_(directory, index, IoMode::kBuffered) {}

Result<std::vector<format::ChunkRecord>> BlobTables::Load(const ShardChunks& chunks,
                                                          std::uint64_t& bytes_read) {
  const Table table{chunks.shard.blob, index_.blob(chunks.shard.blob), bytes_read};
  const auto path = [&] { return JoinPath(directory_.path(), format::BlobName(table.pin.id)); };
  const std::uint32_t first = chunks.shard.first_record + chunks.first_chunk;
  const std::uint32_t end = first + chunks.count;
  SEALPOINT_CHECK(chunks.count > 0 && first < end && end <= table.pin.record_count);
  const std::uint64_t records_at =
      format::RecordsOffset(table.pin.table_offset, table.pin.record_count);
  const std::uint32_t first_group = first / format::kRecordsPerGroup;
  auto groups = Groups(table, first_group, format::GroupCount(end));
  if (!groups) return std::move(groups).error().AtPath(path());

  std::vector<format::ChunkRecord> records;
  records.reserve(chunks.count);
  for (std::uint32_t number = first; number < end; ++number) {
    const ByteSpan group(*(*groups)[number / format::kRecordsPerGroup - first_group]);
    const std::uint64_t at = records_at + std::uint64_t{number} * format::kRecordSize;
    const Result<format::ChunkRecord> record = format::DecodeRecord(
        group.subspan(number % format::kRecordsPerGroup * format::kRecordSize, format::kRecordSize),
        {.has_base = has_base_, .is_object = chunks.is_object});
    if (!record) return Rebased(record.error(), at).AtPath(path());
    if (Status status = CheckInChunkArea(table.pin, *record); !status.ok()) {
      return std::move(status).AtPath(path()).AtOffset(at);
    }
    records.push_back(*record);
  }
  const Status status = format::CheckShardRecords(chunks.shape, chunks.first_chunk, records);
  if (!status.ok()) {
    return Rebased(status, records_at + std::uint64_t{first} * format::kRecordSize).AtPath(path());
  }
  return records;
}

Result<Bytes> BlobTables::Read(const Table& table, std::uint64_t offset, std::uint64_t size) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, files_.Open(table.blob));
  Bytes bytes;
  SEALPOINT_RETURN_IF_ERROR(ResizeBytes(bytes, size));
  SEALPOINT_RETURN_IF_ERROR(file->ReadAt(offset, bytes));
  table.bytes_read += size;
  return bytes;
}

Result<BlobTables::SharedBytes> BlobTables::GroupList(const Table& table) {
  if (SharedBytes cached = FindCached(ListKey(table.blob))) return cached;
  const metadata::BlobPin& pin = table.pin;
  SEALPOINT_ASSIGN_OR_RETURN(
      Bytes bytes, Read(table, pin.table_offset,
                        std::uint64_t{format::GroupCount(pin.record_count)} * format::kDigestSize));
  const Digest computed = ComputeDigest(bytes);
  if (computed != pin.group_list_digest) {
    return DigestError("R-BLB-05", "group list", computed, pin.group_list_digest)
        .AtOffset(pin.table_offset);
  }
  auto list = std::make_shared<const Bytes>(std::move(bytes));
  Keep(ListKey(table.blob), list);
  return list;
}

// Groups [begin, end), of which none is cached, in one read.
Status BlobTables::ReadGroups(const Table& table, std::uint32_t begin, std::uint32_t end,
                              std::vector<SharedBytes>& groups) {
  SEALPOINT_ASSIGN_OR_RETURN(const SharedBytes list, GroupList(table));
  const std::uint64_t records_size = std::uint64_t{table.pin.record_count} * format::kRecordSize;
  const std::uint64_t from = begin * format::kRecordGroupSize;
  const std::uint64_t to = std::min(end * format::kRecordGroupSize, records_size);
  const std::uint64_t records_at =
      format::RecordsOffset(table.pin.table_offset, table.pin.record_count);
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes bytes, Read(table, records_at + from, to - from));
  for (std::uint32_t group = begin; group < end; ++group) {
    const std::uint64_t at = (group - begin) * format::kRecordGroupSize;
    const ByteSpan part = ByteSpan(bytes).subspan(
        at, std::min<std::uint64_t>(format::kRecordGroupSize, bytes.size() - at));
    if (const Status status = format::CheckGroup(*list, group, part); !status.ok()) {
      return Rebased(status, table.pin.table_offset);
    }
    auto kept = std::make_shared<const Bytes>(part.begin(), part.end());
    Keep(GroupKey(table.blob, group), kept);
    groups.push_back(std::move(kept));
  }
  return {};
}

Result<std::vector<BlobTables::SharedBytes>> BlobTables::Groups(const Table& table,
                                                                std::uint32_t begin,
                                                                std::uint32_t end) {
  std::vector<SharedBytes> groups;
  groups.reserve(end - begin);
  for (std::uint32_t group = begin; group < end;) {
    if (SharedBytes cached = FindCached(GroupKey(table.blob, group))) {
      groups.push_back(std::move(cached));
      ++group;
      continue;
    }
    std::uint32_t missing_end = group + 1;
    while (missing_end < end && missing_end - group < kGroupsPerRead &&
           !FindCached(GroupKey(table.blob, missing_end))) {
      ++missing_end;
    }
    SEALPOINT_RETURN_IF_ERROR(ReadGroups(table, group, missing_end, groups));
    group = missing_end;
  }
  return groups;
}

BlobTables::SharedBytes BlobTables::FindCached(std::uint64_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = cache_.find(key);
  return found == cache_.end() ? nullptr : found->second;
}

void BlobTables::Keep(std::uint64_t key, const SharedBytes& bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t size = bytes->size();
  if (!cache_.try_emplace(key, bytes).second) return;
  cached_keys_.push_back(key);
  cached_bytes_ += size;
  // The newest stays, however large it is.
  while (cached_bytes_ > kCacheMaxBytes && cached_keys_.size() > 1) {
    const auto oldest = cache_.find(cached_keys_.front());
    cached_bytes_ -= oldest->second->size();
    cache_.erase(oldest);
    cached_keys_.pop_front();
  }
}

}  // namespace sealpoint::internal::container
