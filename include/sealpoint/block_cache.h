// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BLOCK_CACHE_H_
#define SEALPOINT_BLOCK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sealpoint/export.h"
#include "sealpoint/storage.h"

namespace sealpoint {

// Caches blocks of remote files, to serve many small reads with few round trips. One cache serves
// all files of a reader. Thread safety: all functions.
class SEALPOINT_EXPORT BlockCache {
 public:
  // Keeps at most `block_count_max` blocks, plus one per reading thread.
  static std::shared_ptr<BlockCache> Create(std::uint64_t block_size_bytes,
                                            std::size_t block_count_max);
  virtual ~BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Returns a file that serves reads of less than half a block from the cache; larger reads and
  // direct I/O go to `file`. Returns `file` itself if it has a descriptor, because the system
  // caches it. Blocks are not reloaded if the file changes. The returned file keeps the cache
  // alive.
  virtual std::unique_ptr<ReadableFile> Wrap(std::unique_ptr<ReadableFile> file) = 0;

 protected:
  BlockCache() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_BLOCK_CACHE_H_
