// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/posix_file.h"

namespace sealpoint::internal::storage {

PosixReadableFile::PosixReadableFile(UniqueFd fd, std::string path, std::uint64_t size_bytes,
                                     IoMode mode)
    : fd_(std::move(fd)),
      path_(std::move(path)),
      size_bytes_(size_bytes),
      mode_(mode),
      direct_io_(fd_.get(), mode) {}

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

// Whether a byte can be read without waiting for the device. If not, its page may be fetched.
bool PosixReadableFile::HasByteAtHand(std::uint64_t offset) const {
  std::byte byte{};
  const iovec place = {.iov_base = &byte, .iov_len = 1};
  return ::preadv2(fd_.get(), &place, 1, static_cast<off_t>(offset), RWF_NOWAIT) == 1;
}

// By mincore(2), which fetches nothing. The mapping is never touched, so that neither page tables
// nor other processors take part. If this user neither owns the file nor may write to it, the
// kernel calls all pages resident.
bool PosixReadableFile::IsCached(std::uint64_t offset, std::uint64_t size) const {
  constexpr std::uint64_t kSamples = 8;
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (size == 0 || !RangeFits(offset, size, size_bytes_)) return true;
  const std::uint64_t begin = offset - offset % page;
  const std::uint64_t length = offset + size - begin;
  void* const mapping =
      ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd_.get(), static_cast<off_t>(begin));
  if (mapping == MAP_FAILED) return true;
  std::uint64_t resident = 0;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    const std::uint64_t at = length / kSamples * i + length / kSamples / 2;
    unsigned char found = 0;
    const bool is_known =
        ::mincore(static_cast<std::byte*>(mapping) + (at - at % page), 1, &found) == 0;
    if (!is_known || (found & 1U) != 0) ++resident;
  }
  ::munmap(mapping, length);
  return 2 * resident >= kSamples;
}

// The kernel's own reading ahead goes past the end of what is wanted, by as much as 8 MiB where
// that is set, and was half as fast on two ranks' files. Of each call it fetches no more than it
// reads ahead at most, 128 KiB by default, so it is asked in pieces. That takes some 10 µs per MiB
// also if all of it is in the page cache, which the first and the last byte tell.
void PosixReadableFile::WillRead(std::uint64_t offset, std::uint64_t size) const {
  constexpr std::uint64_t kPieceBytes = 128 * kKiB;
  if (is_direct() || size == 0 || !RangeFits(offset, size, size_bytes_)) return;
  if (HasByteAtHand(offset) && HasByteAtHand(offset + size - 1)) return;
  for (std::uint64_t done = 0; done < size; done += kPieceBytes) {
    static_cast<void>(::posix_fadvise(fd_.get(), static_cast<off_t>(offset + done),
                                      static_cast<off_t>(std::min(kPieceBytes, size - done)),
                                      POSIX_FADV_WILLNEED));
  }
}

Status PosixReadableFile::ReadAll(std::uint64_t offset, MutableByteSpan out,
                                  std::size_t needed_bytes) const {
  std::size_t done = 0;
  while (done < needed_bytes) {
    const MutableByteSpan rest = out.subspan(done);
    const bool was_direct = direct_io_.IsOnFor(offset + done, rest.size(), rest.data());
    const ssize_t got =
        ::pread(fd_.get(), rest.data(), rest.size(), static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && was_direct && direct_io_.TurnOff()) {
      // The device requires a larger alignment, or a short read left an unaligned rest.
      continue;
    }
    if (got < 0) return ErrnoError("pread", errno).AtPath(path_).AtOffset(offset + done);
    if (got == 0) return EndsEarly(offset + done, offset, out.size());
    done += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace sealpoint::internal::storage
