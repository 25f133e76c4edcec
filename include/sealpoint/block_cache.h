// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BLOCK_CACHE_H_
#define SEALPOINT_BLOCK_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sealpoint/export.h"
#include "sealpoint/storage.h"

namespace sealpoint {

// Blocks of files of which each read is a round trip: so many small reads need few of them. One
// serves all files of a reader. Thread safety: all functions.
class SEALPOINT_EXPORT BlockCache {
 public:
  // Keeps at most `block_count_max` blocks; each thread that reads may have one more.
  static std::shared_ptr<BlockCache> Create(std::uint64_t block_size_bytes,
                                            std::size_t block_count_max);
  virtual ~BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Reads of less than half a block are served from blocks; the rest, and those with direct I/O, go
  // to the file itself. Returns `file` if it has a descriptor: the system caches it. A block is not
  // read again if the file changes. What is returned keeps the cache alive.
  virtual std::unique_ptr<ReadableFile> Wrap(std::unique_ptr<ReadableFile> file) = 0;

 protected:
  BlockCache() = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_BLOCK_CACHE_H_
