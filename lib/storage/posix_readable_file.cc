// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/posix_file.h"

namespace sealpoint::internal {

PosixReadableFile::PosixReadableFile(UniqueFd fd, std::string path, std::uint64_t size_bytes,
                                     IoMode mode)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      size_bytes_(size_bytes),
      mode_(mode),
      is_direct_(mode == IoMode::kDirect && SetDirect(fd_.get(), true)) {}

Status PosixReadableFile::EndsEarly(std::uint64_t end, std::uint64_t offset,
                                    std::size_t size) const {
  return MakeError(Code::kIncomplete, "file has ", end, " bytes, expected at least ", offset, " + ",
                   size)
      .AtPath(path_)
      .AtOffset(end);
}

Status PosixReadableFile::ReadAt(std::uint64_t offset, MutableByteSpan out) const {
  Status status = CheckFileRange(offset, out.size());
  if (status.ok() && is_direct()) status = CheckDirectAlignment(offset, out.size(), out.data());
  if (!status.ok()) return std::move(status).AtPath(path_).AtOffset(offset);
  // A caller that opened the file with kDirect may read the last block whole, even after a
  // fall-back to buffered I/O, which the caller cannot know of.
  const std::uint64_t limit =
      mode_ == IoMode::kDirect ? AlignUp(size_bytes_, kDirectIoAlignmentBytes) : size_bytes_;
  if (!RangeFits(offset, out.size(), limit)) return EndsEarly(size_bytes_, offset, out.size());
  const std::size_t needed_bytes =
      std::min<std::uint64_t>(out.size(), offset < size_bytes_ ? size_bytes_ - offset : 0);
  SEALPOINT_RETURN_IF_ERROR(ReadAll(offset, out, needed_bytes));
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(needed_bytes), out.end(), std::byte{0});
  return {};
}

Status PosixReadableFile::ReadAll(std::uint64_t offset, MutableByteSpan out,
                                  std::size_t needed_bytes) const {
  std::size_t done = 0;
  while (done < needed_bytes) {
    const bool was_direct = is_direct();
    const MutableByteSpan rest = out.subspan(done);
    const ssize_t got =
        ::pread(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && was_direct && SetDirect(fd_.get(), false)) {
      // The device requires a larger alignment, or a short read left an unaligned rest.
      is_direct_.store(false, std::memory_order_relaxed);
      continue;
    }
    if (got < 0) return ErrnoError("pread", errno).AtPath(path_).AtOffset(offset + done);
    if (got == 0) return EndsEarly(offset + done, offset, out.size());
    done += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace sealpoint::internal
