// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/file_size_signal.h"
#include "lib/storage/posix_file.h"

namespace sealpoint::internal::storage {
PosixWritableFile::PosixWritableFile(UniqueFd fd, std::string path, IoMode mode)
    : fd_(std::move(fd)), path_(std::move(path)), direct_io_(fd_.get(), mode) {}

Status PosixWritableFile::CheckUsable() const {
  SEALPOINT_RETURN_IF_ERROR(first_error_.Get());
  if (!fd_.is_open()) return InvalidArgument("file is closed").AtPath(path_);
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
  WithoutFileSizeSignal without_signal;
  while (!data.empty()) {
    const bool was_direct = direct_io_.IsOnFor(offset, data.size(), data.data());
    const ssize_t written =
        ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EINVAL && was_direct && direct_io_.TurnOff()) {
      // The device requires a larger alignment, or a short write left an unaligned rest.
      continue;
    }
    if (written < 0) {
      without_signal.NoteFailure();
      return ErrnoError("pwrite", errno).AtOffset(offset);
    }
    if (written == 0) {
      return MakeError(Code::kIo, "pwrite: wrote 0 of ", data.size(), " bytes without an error")
          .AtOffset(offset);
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
  // posix_fallocate(3), which writes a byte to each block if the file system cannot preallocate.
  WithoutFileSizeSignal without_signal;
  while (::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size_bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS) return {};
    without_signal.NoteFailure();
    return ErrnoError("fallocate", errno).AtPath(path_);
  }
  *done = true;
  return {};
}

Status PosixWritableFile::Sync() {
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  // Never repeated, not even after EINTR: whether the data reached the device is not known, and a
  // second fsync may find the pages marked clean and succeed (first_error.h).
  if (::fsync(fd_.get()) == 0) return {};
  return first_error_.Note(ErrnoError("fsync", errno).AtPath(path_));
}

Status PosixWritableFile::Close() {
  if (!fd_.is_open()) return CheckUsable();
  // Linux frees the descriptor whatever close(2) returns, so that a second close could hit a file
  // that another thread has opened meanwhile.
  if (::close(fd_.Release()) != 0) {
    static_cast<void>(first_error_.Note(ErrnoError("close", errno).AtPath(path_)));
  }
  return first_error_.Get();
}

}  // namespace sealpoint::internal::storage
