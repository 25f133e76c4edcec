// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_COMMON_RAW_FILE_H_
#define SEALPOINT_BENCHMARKS_COMMON_RAW_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace sealpoint::bench {

// Page-aligned memory, touched. Freed with the pointer.
struct FreeDeleter {
  void operator()(std::byte* memory) const;
};
using AlignedMemory = std::unique_ptr<std::byte[], FreeDeleter>;
AlignedMemory AllocateAligned(std::size_t size);

// What the figures are measured against: plain O_DIRECT pwrite(2) / pread(2) in pieces of 4 MiB,
// fsync(2) and close(2), nothing else. Any error ends the program with a message.
void WriteRaw(const std::string& path, std::span<const std::byte> bytes);
// Reads [offset, offset + length) into `buffer` (at least kRawPieceSize), throwing the content
// away.
void ReadRaw(const std::string& path, std::uint64_t offset, std::uint64_t length,
             std::span<std::byte> buffer);
inline constexpr std::size_t kRawPieceSize = std::size_t{4} << 20;

}  // namespace sealpoint::bench

#endif  // SEALPOINT_BENCHMARKS_COMMON_RAW_FILE_H_
