// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONTAINER_BLOB_FILES_H_
#define SEALPOINT_LIB_CONTAINER_BLOB_FILES_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/metadata/metadata.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::container {

// The blobs of an index, opened on demand. The latest few remain open, because a checkpoint may
// have more blobs than a process may open files. They are closed when no further file can be
// opened. Borrows directory and index. Thread safety: all functions.
class BlobFiles {
 public:
  BlobFiles(const Directory& directory, const metadata::Metadata& index, IoMode mode)
      : BlobFiles(directory, index, mode, {}) {}

  // The same blobs in another mode, with its own open files. If it runs out of files, it also
  // closes files of this object, and of the objects that this one was made from.
  BlobFiles InMode(IoMode mode) const;

  // Errors: Incomplete (R-BLB-01: missing or short), Corrupt (R-BLB-09: longer), Io.
  Result<std::shared_ptr<const ReadableFile>> Open(std::uint32_t blob);
  // The same for a hint, which does not matter: null after any error, and no other file is closed.
  std::shared_ptr<const ReadableFile> TryOpen(std::uint32_t blob);

 private:
  using File = std::shared_ptr<const ReadableFile>;
  struct OpenFile {
    std::uint32_t blob = 0;
    File file;
  };
  // Thread safety: all functions.
  class OpenFiles {
   public:
    File Find(std::uint32_t blob);  // null if there is none
    void Keep(OpenFile file);
    bool CloseAll();  // false if there was none

   private:
    std::mutex mutex_;
    std::deque<OpenFile> files_;  // oldest first
  };

  BlobFiles(const Directory& directory, const metadata::Metadata& index, IoMode mode,
            std::vector<std::shared_ptr<OpenFiles>> others)
      : directory_(directory), index_(index), mode_(mode), others_(std::move(others)) {}
  Result<File> Check(std::uint32_t blob, std::unique_ptr<ReadableFile> opened);
  // Closes files that are only open for speed; false if there were none.
  bool CloseFiles();

  const Directory& directory_;
  const metadata::Metadata& index_;
  const IoMode mode_;
  const std::shared_ptr<OpenFiles> open_ = std::make_shared<OpenFiles>();
  const std::vector<std::shared_ptr<OpenFiles>> others_;  // of the objects it was made from
};

}  // namespace sealpoint::internal::container

#endif  // SEALPOINT_LIB_CONTAINER_BLOB_FILES_H_
