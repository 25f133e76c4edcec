// SPDX-License-Identifier: Apache-2.0
#include "readers/load/stored_chunks.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/base/macros.h"

namespace sealpoint::internal::load {
namespace {

// Adds up the chunk records of a tensor, some at a time.
class ChunkCounter {
 public:
  ChunkCounter(container::BlobTables& tables, const metadata::TensorView& tensor)
      : tables_(tables), tensor_(tensor) {}

  Status CountAll() {
    Status status;
    tensor_.ForEachShard([&](std::size_t shard, const Region& region) {
      if (status.ok()) status = CountShard(tensor_.shard_ref(shard), region.element_count());
    });
    return status;
  }
  StoredChunks counts() && { return std::move(counts_); }

 private:
  Status CountShard(const metadata::ShardRef& shard, std::uint64_t element_count) {
    constexpr std::uint64_t kRecordsAtOnce = 1 << 14;
    const format::ShardShape shape{.raw_size = element_count * tensor_.element_size(),
                                   .chunk_size = tensor_.chunk_size()};
    const std::uint64_t chunk_count = metadata::ChunkCount(shape.raw_size, shape.chunk_size);
    for (std::uint64_t first = 0; first < chunk_count; first += kRecordsAtOnce) {
      const std::uint64_t count = std::min(kRecordsAtOnce, chunk_count - first);
      std::uint64_t bytes_read = 0;
      SEALPOINT_ASSIGN_OR_RETURN(const std::vector<format::ChunkRecord> records,
                                 tables_.Load({.shard = shard,
                                               .shape = shape,
                                               .first_chunk = static_cast<std::uint32_t>(first),
                                               .count = static_cast<std::uint32_t>(count)},
                                              bytes_read));
      for (const format::ChunkRecord& record : records) Count(record);
    }
    return {};
  }

  void Count(const format::ChunkRecord& record) {
    ++counts_.chunk_count;
    counts_.raw_bytes += record.raw_size;
    counts_.stored_bytes += record.stored_size;
    const auto at = std::ranges::lower_bound(counts_.codecs, record.codec, {},
                                             &StoredChunks::CodecCount::codec);
    if (at != counts_.codecs.end() && at->codec == record.codec) {
      ++at->chunk_count;
    } else {
      counts_.codecs.insert(at, {.codec = record.codec, .chunk_count = 1});
    }
  }

  container::BlobTables& tables_;
  const metadata::TensorView tensor_;
  StoredChunks counts_;
};

}  // namespace

Result<StoredChunks> CountChunks(container::BlobTables& tables,
                                 const metadata::TensorView& tensor) {
  ChunkCounter counter(tables, tensor);
  SEALPOINT_RETURN_IF_ERROR(counter.CountAll());
  return std::move(counter).counts();
}

}  // namespace sealpoint::internal::load
