// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_POSIX_FILE_H_
#define SEALPOINT_LIB_STORAGE_POSIX_FILE_H_

#include <memory>
#include <optional>
#include <string>

#include "lib/storage/first_error.h"
#include "lib/storage/posix_fd.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// Durability of each call on Linux (fsync(2), open(2), close(2)):
//   pwrite   nothing. The data is in the page cache, or with O_DIRECT in the device's cache, and
//            the file's length and block map are in memory only.
//   fsync    data, length and block map of this file, and the device's write cache is flushed; not
//            the name. Needed with O_DIRECT as well, for the length and for that flush.
//   close    nothing, but it may report a write that failed (NFS, quotas).
//   fsync of the directory   names in the directory.
class PosixWritableFile final : public WritableFile {
 public:
  // Takes an empty, newly made regular file that is open for writing. With kDirect, direct I/O is
  // in force unless the file system refuses it.
  PosixWritableFile(UniqueFd fd, std::string path, IoMode mode);

  Status WriteAt(std::uint64_t offset, ByteSpan data) override;
  Status Preallocate(std::uint64_t size_bytes) override;
  Status Sync() override;
  Status Close() override;
  bool is_direct() const override { return direct_io_.is_on(); }

  // Like Preallocate; `*done` is true if the file system supports it.
  Status TryPreallocate(std::uint64_t size_bytes, bool* done);

 private:
  Status CheckUsable() const;
  Status WriteAll(std::uint64_t offset, ByteSpan data);

  UniqueFd fd_;
  const std::string path_;
  DirectIo direct_io_;
  FirstError first_error_;
};

class PosixReadableFile final : public ReadableFile {
 public:
  // Takes a regular file of `size_bytes` that is open for reading.
  PosixReadableFile(UniqueFd fd, std::string path, std::uint64_t size_bytes, IoMode mode);

  std::uint64_t size_bytes() const override { return size_bytes_; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override;
  void WillRead(std::uint64_t offset, std::uint64_t size) const override;
  bool IsCached(std::uint64_t offset, std::uint64_t size) const override;
  bool is_direct() const override { return direct_io_.is_on(); }
  std::optional<int> descriptor() const override { return fd_.get(); }

 private:
  // Fills `out`; at least the first `needed_bytes` must be in the file.
  Status ReadAll(std::uint64_t offset, MutableByteSpan out, std::size_t needed_bytes) const;
  bool HasByteAtHand(std::uint64_t offset) const;
  // Incomplete: the file has only `end` bytes.
  Status EndsEarly(std::uint64_t end, std::uint64_t offset, std::size_t size) const;

  UniqueFd fd_;
  const std::string path_;
  const std::uint64_t size_bytes_;
  const IoMode mode_;
  mutable DirectIo direct_io_;
};

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_POSIX_FILE_H_
