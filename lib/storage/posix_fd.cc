// SPDX-License-Identifier: Apache-2.0
#include "lib/storage/posix_fd.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::storage {

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

bool SetDirect(int fd, bool direct) {
  // Since Linux 6.6 tmpfs takes the flag and copies as before.
  struct statfs system = {};
  if (direct && ::fstatfs(fd, &system) == 0 &&
      (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC)) {
    return false;
  }
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0) return false;
  const int new_flags = direct ? (flags | O_DIRECT) : (flags & ~O_DIRECT);
  return ::fcntl(fd, F_SETFL, new_flags) == 0;
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
