// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONTAINER_BLOB_FILES_H_
#define SEALPOINT_LIB_CONTAINER_BLOB_FILES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "lib/metadata/metadata.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// The blobs of an index, opened when they are needed; the latest few stay open, since a checkpoint
// may have more blobs than a process may have files. Borrows directory and index.
// Thread safety: all functions.
class BlobFiles {
 public:
  BlobFiles(const Directory& directory, const Metadata& index, IoMode mode)
      : directory_(directory), index_(index), mode_(mode) {}

  // The same blobs, to be opened in another mode.
  BlobFiles InMode(IoMode mode) const { return {directory_, index_, mode}; }

  // Errors: Incomplete (R-BLB-01: missing or short), Corrupt (R-BLB-09: longer), Io.
  Result<std::shared_ptr<const ReadableFile>> Open(std::uint32_t blob);

 private:
  using Entry = std::pair<std::uint32_t, std::shared_ptr<const ReadableFile>>;

  const Directory& directory_;
  const Metadata& index_;
  const IoMode mode_;
  std::mutex mutex_;
  std::deque<Entry> open_;  // oldest first
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_CONTAINER_BLOB_FILES_H_
