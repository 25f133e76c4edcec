// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/posix_fd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"

namespace sealpoint::internal::storage {
namespace {

// Since Linux 6.6 tmpfs takes O_DIRECT and copies as before.
bool IsInMemory(int fd) {
  struct statfs system = {};
  return ::fstatfs(fd, &system) == 0 &&
         (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC);
}

bool SetDirectFlag(int fd, bool direct) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  const int new_flags = direct ? (flags | O_DIRECT) : (flags & ~O_DIRECT);
  return ::fcntl(fd, F_SETFL, new_flags) == 0;
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  if (this != &other) {
    if (is_open()) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

UniqueFd::~UniqueFd() {
  if (is_open()) ::close(fd_);
}

Result<UniqueFd> OpenAt(int directory_fd, std::string_view name, int flags, mode_t mode,
                        const std::string& path) {
  const std::string terminated(name);
  while (true) {
    const int fd = ::openat(directory_fd, terminated.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return UniqueFd(fd);
    if (errno != EINTR) return ErrnoError("openat", errno).AtPath(path);
  }
}

Status SyncDirectoryFd(int directory_fd, const std::string& path) {
  if (::fsync(directory_fd) == 0) return {};
  if (errno == EINVAL) {
    return MakeError(Code::kUnsupported, "fsync: file system cannot sync a directory (errno ",
                     errno, ")")
        .AtPath(path);
  }
  return ErrnoError("fsync", errno).AtPath(path);
}

DirectIo::DirectIo(int fd, IoMode mode) : fd_(fd) {
  if (mode != IoMode::kDirect || IsInMemory(fd)) return;
#if defined(STATX_DIOALIGN)
  struct statx info = {};
  // Since Linux 6.1. Both are 0 where there is no direct I/O.
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
      (info.stx_mask & STATX_DIOALIGN) != 0) {
    memory_alignment_bytes_ = info.stx_dio_mem_align;
    offset_alignment_bytes_ = info.stx_dio_offset_align;
  }
#endif
  if (memory_alignment_bytes_ == 0 || offset_alignment_bytes_ == 0) return;
  is_on_.store(SetDirectFlag(fd, true), std::memory_order_relaxed);
}

bool DirectIo::IsOnFor(std::uint64_t offset, std::uint64_t size_bytes, const void* address) {
  if (!is_on()) return false;
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if ((offset | size_bytes) % offset_alignment_bytes_ == 0 &&
      number % memory_alignment_bytes_ == 0) {
    return true;
  }
  return !TurnOff();
}

bool DirectIo::TurnOff() {
  if (!SetDirectFlag(fd_, false)) return false;
  is_on_.store(false, std::memory_order_relaxed);
  return true;
}

Status CheckDirectAlignment(std::uint64_t offset, std::uint64_t size_bytes, const void* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  if ((offset | size_bytes | number) % kDirectIoAlignmentBytes == 0) return {};
  return InvalidArgument("offset is ", offset, ", size ", size_bytes, " and address modulo ",
                         kDirectIoAlignmentBytes, " ", number % kDirectIoAlignmentBytes,
                         ", expected multiples of ", kDirectIoAlignmentBytes, " for direct I/O");
}

Status CheckFileRange(std::uint64_t offset, std::uint64_t size_bytes) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
  if (RangeFits(offset, size_bytes, kMax)) return {};
  return InvalidArgument("offset ", offset, " and size ", size_bytes,
                         " exceed the greatest file offset");
}

}  // namespace sealpoint::internal::storage
