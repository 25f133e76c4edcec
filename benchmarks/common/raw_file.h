// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_COMMON_RAW_FILE_H_
#define SEALPOINT_BENCHMARKS_COMMON_RAW_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sealpoint::bench {

// Aligned memory whose pages are present. Freed with the pointer. Direct I/O from and to ordinary
// 4 KiB pages is up to three times slower than with huge pages; ordinary pages are what malloc
// gives a program.
enum class Pages { kOrdinary, kHuge };
struct FreeDeleter {
  void operator()(std::byte* memory) const;
};
using AlignedMemory = std::unique_ptr<std::byte[], FreeDeleter>;
AlignedMemory AllocateAligned(std::size_t size, Pages pages);

// The baseline of the measurements: plain O_DIRECT pwrite(2) and pread(2) of 4 MiB at a time,
// fsync(2) and close(2), nothing else. Any error ends the program with a message.
void WriteRaw(const std::string& path, std::span<const std::byte> bytes);
// A file that is open for plain O_DIRECT reads.
class RawReader {
 public:
  explicit RawReader(const std::string& path);
  ~RawReader();
  RawReader(const RawReader&) = delete;
  RawReader& operator=(const RawReader&) = delete;

  // Reads [offset, offset + length), 4 MiB at a time, into the same bytes of `buffer`, which has at
  // least kRawPieceSize.
  void Read(std::uint64_t offset, std::uint64_t length, std::span<std::byte> buffer) const;

 private:
  std::string path_;
  int fd_ = -1;
};
inline constexpr std::size_t kRawPieceSize = std::size_t{4} << 20;

// A file that is open for plain pread(2) through the page cache, 256 KiB at a time.
class CachedReader {
 public:
  explicit CachedReader(const std::string& path);
  ~CachedReader();
  CachedReader(const CachedReader&) = delete;
  CachedReader& operator=(const CachedReader&) = delete;

  void Read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int fd_ = -1;
};

}  // namespace sealpoint::bench

#endif  // SEALPOINT_BENCHMARKS_COMMON_RAW_FILE_H_
