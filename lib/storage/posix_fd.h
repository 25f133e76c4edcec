// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_STORAGE_POSIX_FD_H_
#define SEALPOINT_LIB_STORAGE_POSIX_FD_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

// Owns a file descriptor. The destructor closes it and ignores errors. Do not rely on it after
// writing, because NFS and quotas report failed writes from close(2).
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd();

  int get() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// openat(2) with O_CLOEXEC, repeated after EINTR. Errors: those of ErrnoError, at `path`.
Result<UniqueFd> OpenAt(int directory_fd, std::string_view name, int flags, mode_t mode,
                        const std::string& path);

// fsync(2) of a directory. Unsupported if the file system has no such operation (EINVAL).
Status SyncDirectoryFd(int directory_fd, const std::string& path);

// O_DIRECT of an open file: on from the beginning, or until a request shows that the file refuses
// it. Thread safety: all functions.
//
// O_DIRECT is never passed to open(2): with O_CREAT a file system without direct I/O fails with
// EINVAL only after it has created the file, which would then remain.
class DirectIo {
 public:
  // `fd` stays open for the last call. Off unless `mode` is kDirect; off if the file system refuses
  // it, or keeps its files in memory.
  DirectIo(int fd, IoMode mode);

  bool is_on() const { return is_on_.load(std::memory_order_relaxed); }
  // Whether it is on for this request. Turns it off if the file requires a larger alignment than
  // the request has.
  bool IsOnFor(std::uint64_t offset, std::uint64_t size_bytes, const void* address);
  // After EINVAL. False if the flag cannot be changed.
  bool TurnOff();

 private:
  const int fd_;
  std::uint64_t memory_alignment_bytes_ = kDirectIoAlignmentBytes;
  std::uint64_t offset_alignment_bytes_ = kDirectIoAlignmentBytes;  // of sizes, too
  std::atomic<bool> is_on_{false};
};

// InvalidArgument unless offset, size and address are multiples of kDirectIoAlignmentBytes.
Status CheckDirectAlignment(std::uint64_t offset, std::uint64_t size_bytes, const void* address);

// InvalidArgument if the offset of some byte of the range does not fit off_t.
Status CheckFileRange(std::uint64_t offset, std::uint64_t size_bytes);

}  // namespace sealpoint::internal::storage

#endif  // SEALPOINT_LIB_STORAGE_POSIX_FD_H_
