// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/storage/posix_file.h"

namespace sealpoint::internal::storage {
namespace {

// Asks which pages of a range of a file are in the page cache.
class PageSampler {
 public:
  // The range is not empty, and in the file.
  PageSampler(int fd, std::uint64_t offset, std::uint64_t size)
      : fd_(fd), begin_(offset - offset % page_size()), size_(offset + size - begin_) {
    if (!CountPages(offset)) {
      mapping_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(begin_));
    }
  }
  ~PageSampler() {
    if (mapping_ != MAP_FAILED) ::munmap(mapping_, size_);
  }
  PageSampler(const PageSampler&) = delete;
  PageSampler& operator=(const PageSampler&) = delete;

  // Whether the page that holds the byte at `at` of the range is cached. True if unknown.
  bool IsResident(std::uint64_t at) const {
    if (mapping_ == MAP_FAILED) return CountPages(begin_ + at).value_or(1) > 0;
    auto* const byte = static_cast<std::byte*>(mapping_) + at;
    unsigned char found = 0;
    return ::mincore(byte - at % page_size(), 1, &found) != 0 || (found & 1U) != 0;
  }

 private:
  static std::uint64_t page_size() {
    static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    return size;
  }
  // Counts the cached pages of a range of one byte, by cachestat(2), which needs no mapping.
  // Nothing if the kernel is older than 6.5 or refuses it. Older headers do not declare it.
  std::optional<std::uint64_t> CountPages(std::uint64_t offset) const {
    constexpr long kCacheStat = 451;
    const std::array<std::uint64_t, 2> range = {offset, 1};
    std::array<std::uint64_t, 5> counts{};  // cached, dirty, written back, evicted, recently so
    if (::syscall(kCacheStat, fd_, range.data(), counts.data(), 0) != 0) return std::nullopt;
    return counts[0];
  }

  const int fd_;
  const std::uint64_t begin_;
  const std::uint64_t size_;
  void* mapping_ = MAP_FAILED;
};

}  // namespace

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

// By cachestat(2) or mincore(2), which fetch nothing. If this user neither owns the file nor may
// write to it, the kernel refuses the first and calls all pages resident for the second.
bool PosixReadableFile::IsCached(std::uint64_t offset, std::uint64_t size) const {
  constexpr std::uint64_t kSamples = 4;
  if (size == 0 || !RangeFits(offset, size, size_bytes_)) return true;
  const PageSampler pages(fd_.get(), offset, size);
  std::uint64_t resident = 0;
  for (std::uint64_t i = 0; i < kSamples; ++i) {
    if (pages.IsResident(size / kSamples * i + size / kSamples / 2)) ++resident;
  }
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
