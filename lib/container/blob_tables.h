// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONTAINER_BLOB_TABLES_H_
#define SEALPOINT_LIB_CONTAINER_BLOB_TABLES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "lib/container/blob_files.h"
#include "lib/format/chunk_table.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::container {

// Chunks of one shard, located by the index.
struct ShardChunks {
  metadata::ShardRef shard;
  format::ShardShape shape;
  std::uint32_t first_chunk = 0;
  std::uint32_t count = 0;
  bool is_object = false;
};

// The chunk records of all blobs, read on demand and verified by the digests in the index: the
// group list of a blob, and the groups of 64 records that are used. The latest 64 MiB of verified
// bytes are kept. Borrows directory and index. Thread safety: all functions.
class BlobTables {
 public:
  BlobTables(const Directory& directory, const metadata::Metadata& index);

  // Returns the records of these chunks, checked against the shard (R-REC-*) and the blob's chunk
  // area. Adds the table bytes read to `bytes_read`. Precondition: the chunks exist in the index.
  // Errors: Corrupt, Unsupported, Incomplete, Io.
  Result<std::vector<format::ChunkRecord>> Load(const ShardChunks& chunks,
                                                std::uint64_t& bytes_read);

  // The blobs that the tables are read from.
  const BlobFiles& files() const { return files_; }

 private:
  using SharedBytes = std::shared_ptr<const Bytes>;

  // State for reading a blob's table.
  struct Table {
    std::uint32_t blob = 0;
    metadata::BlobPin pin;
    std::uint64_t& bytes_read;
  };
  Result<Bytes> Read(const Table& table, std::uint64_t offset, std::uint64_t size);
  Result<SharedBytes> GroupList(const Table& table);
  Status ReadGroups(const Table& table, std::uint32_t begin, std::uint32_t end,
                    std::vector<SharedBytes>& groups);
  Result<std::vector<SharedBytes>> Groups(const Table& table, std::uint32_t begin,
                                          std::uint32_t end);
  SharedBytes FindCached(std::uint64_t key);
  void Keep(std::uint64_t key, const SharedBytes& bytes);

  const Directory& directory_;
  const metadata::Metadata& index_;
  const bool has_base_;
  BlobFiles files_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, SharedBytes> cache_;
  std::deque<std::uint64_t> cached_keys_;  // oldest first
  std::uint64_t cached_bytes_ = 0;
};

}  // namespace sealpoint::internal::container

#endif  // SEALPOINT_LIB_CONTAINER_BLOB_TABLES_H_
