// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/common/raw_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace sealpoint::bench {
namespace {

void CheckCall(bool is_good, const char* what, const std::string& path) {
  if (is_good) return;
  std::fprintf(stderr, "%s %s: %s\n", what, path.c_str(), std::strerror(errno));
  std::exit(1);
}

}  // namespace

void FreeDeleter::operator()(std::byte* memory) const { std::free(memory); }

AlignedMemory AllocateAligned(std::size_t size, Pages pages) {
  constexpr std::size_t kHugePageSize = std::size_t{2} << 20;
  const std::size_t rounded = (size + kHugePageSize - 1) / kHugePageSize * kHugePageSize;
  void* const memory = std::aligned_alloc(kHugePageSize, rounded);
  if (memory == nullptr) std::abort();
  const int advice = pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
  static_cast<void>(madvise(memory, rounded, advice));  // advisory only
  std::memset(memory, 1, rounded);
  return AlignedMemory(static_cast<std::byte*>(memory));
}

void WriteRaw(const std::string& path, std::span<const std::byte> bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_DIRECT, 0644);
  CheckCall(fd >= 0, "open", path);
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t size = std::min(kRawPieceSize, bytes.size() - done);
    const ssize_t written = pwrite(fd, bytes.data() + done, size, static_cast<off_t>(done));
    CheckCall(written > 0, "pwrite", path);
    done += static_cast<std::size_t>(written);
  }
  CheckCall(fsync(fd) == 0, "sync", path);
  CheckCall(close(fd) == 0, "close", path);
}

RawReader::RawReader(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT)) {
  CheckCall(fd_ >= 0, "open", path_);
}

RawReader::~RawReader() { close(fd_); }

void RawReader::Read(std::uint64_t offset, std::uint64_t length,
                     std::span<std::byte> buffer) const {
  for (std::uint64_t done = 0; done < length;) {
    const std::size_t size = std::min<std::uint64_t>(kRawPieceSize, length - done);
    const ssize_t got = pread(fd_, buffer.data(), size, static_cast<off_t>(offset + done));
    CheckCall(got > 0, "pread", path_);
    done += static_cast<std::uint64_t>(got);
  }
}

CachedReader::CachedReader(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  CheckCall(fd_ >= 0, "open", path_);
}

CachedReader::~CachedReader() { close(fd_); }

void CachedReader::Read(std::uint64_t offset, std::span<std::byte> out) const {
  constexpr std::size_t kBlockSize = std::size_t{256} << 10;
  for (std::size_t done = 0; done < out.size();) {
    const std::size_t size = std::min(kBlockSize, out.size() - done);
    const ssize_t got = pread(fd_, out.data() + done, size, static_cast<off_t>(offset + done));
    CheckCall(got > 0, "pread", path_);
    done += static_cast<std::size_t>(got);
  }
}

}  // namespace sealpoint::bench
