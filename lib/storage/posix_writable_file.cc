// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/posix_file.h"

namespace sealpoint::internal {

PosixWritableFile::PosixWritableFile(UniqueFd fd, std::string path, IoMode mode)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      is_direct_(mode == IoMode::kDirect && SetDirect(fd_.get(), true)) {}

Status PosixWritableFile::CheckUsable() const {
  SEALPOINT_RETURN_IF_ERROR(first_error_.Get());
  if (!fd_.is_open()) return InvalidArgument("the file was closed").AtPath(path_);
  return {};
}

Status PosixWritableFile::WriteAt(std::uint64_t offset, ByteSpan data) {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  Status status = CheckFileRange(offset, data.size());
  if (status.ok() && is_direct()) status = CheckDirectAlignment(offset, data.size(), data.data());
  if (status.ok()) status = WriteAll(offset, data);
  return first_error_.Note(std::move(status).AtPath(path_).AtOffset(offset));
}

Status PosixWritableFile::WriteAll(std::uint64_t offset, ByteSpan data) {
  while (!data.empty()) {
    const bool was_direct = is_direct();
    const ssize_t written =
        ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && was_direct && SetDirect(fd_.get(), false)) {
      // The device asks for more than our alignment, or a short write left an odd rest.
      is_direct_.store(false, std::memory_order_relaxed);
      continue;
    }
    if (written < 0) return ErrnoError("pwrite", errno).AtOffset(offset);
    if (written == 0) {
      return MakeError(Code::kIo, "pwrite: wrote nothing and gave no error").AtOffset(offset);
    }
    data = data.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status PosixWritableFile::Preallocate(std::uint64_t size_bytes) {
  bool done = false;
  return TryPreallocate(size_bytes, &done);
}

Status PosixWritableFile::TryPreallocate(std::uint64_t size_bytes, bool* done) {
  *done = false;
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  if (size_bytes == 0) return {};
  if (Status status = CheckFileRange(0, size_bytes); !status.ok()) {
    return std::move(status).AtPath(path_);
  }
  // KEEP_SIZE, since the length must be what was written. fallocate(2) and never
  // posix_fallocate(3), which writes a byte to each block where the file system cannot do it.
  while (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS) return {};
    return ErrnoError("fallocate", errno).AtPath(path_);
  }
  *done = true;
  return {};
}

Status PosixWritableFile::Sync() {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  // EINTR is an error like any other here: whether the data went out is not known.
  if (::fsync(fd_.get()) == 0) return {};
  return first_error_.Note(ErrnoError("fsync", errno).AtPath(path_));
}

Status PosixWritableFile::Close() {
  if (!fd_.is_open()) return CheckUsable();
  // Linux gives the descriptor free whatever close(2) returns: never a second try.
  if (::close(fd_.Release()) != 0) {
    static_cast<void>(first_error_.Note(ErrnoError("close", errno).AtPath(path_)));
  }
  return first_error_.Get();
}

}  // namespace sealpoint::internal
