// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/frame_header.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "lib/base/endian.h"
#include "lib/base/errors.h"

namespace sealpoint::internal::codec {
namespace {

constexpr std::uint32_t kFrameMagic = 0xfd2fb528;
constexpr std::size_t kMagicBytes = 4;
constexpr std::size_t kBlockHeaderBytes = 3;
constexpr std::uint64_t kBlockSizeMaxBytes = 128 * kKiB;
constexpr std::uint64_t kChecksumBytes = 4;
constexpr std::uint32_t kRunBlock = 1;
constexpr std::uint32_t kReservedBlock = 3;

Status NoFrame(std::string_view what) {
  return RuleError(Code::kCorrupt, "R-COD-02", "stored chunk is not a zstd frame: ", what);
}

template <typename... Parts>
Status BadBlocks(const Parts&... parts) {
  return RuleError(Code::kCorrupt, "R-COD-06", "zstd frame ", parts...);
}

// Five bits of exponent, three of mantissa: (1 + mantissa / 8) * 2^(10 + exponent).
std::uint64_t WindowSize(std::byte descriptor) {
  const auto value = std::to_integer<unsigned>(descriptor);
  const std::uint64_t base = std::uint64_t{1} << (10 + (value >> 3));
  return base + base / 8 * (value & 7);
}

// Precondition: `field` has 1, 2, 4 or 8 bytes.
std::uint64_t ContentSize(ByteSpan field) {
  std::uint64_t size = 0;
  for (std::size_t i = field.size(); i > 0; --i) {
    size = size << 8 | std::to_integer<std::uint64_t>(field[i - 1]);
  }
  // The two-byte form counts from 256, since the one-byte form covers what is below.
  return field.size() == 2 ? size + 256 : size;
}

}  // namespace

Result<FrameHeader> ParseFrameHeader(ByteSpan stored) {
  if (stored.size() < kMagicBytes + 1) return NoFrame("shorter than a frame header");
  if (LoadLe<std::uint32_t>(stored, 0) != kFrameMagic) return NoFrame("wrong magic");

  constexpr std::array<std::size_t, 4> kDictionaryIdBytes = {0, 1, 2, 4};
  constexpr std::array<std::size_t, 4> kContentSizeBytes = {0, 2, 4, 8};
  const auto descriptor = std::to_integer<unsigned>(stored[kMagicBytes]);
  const bool single_segment = (descriptor & 0x20) != 0;
  if ((descriptor & 0x08) != 0) return NoFrame("reserved bit set");
  const std::size_t dictionary_bytes = kDictionaryIdBytes[descriptor & 3];
  std::size_t size_bytes = kContentSizeBytes[descriptor >> 6];
  if (single_segment && size_bytes == 0) size_bytes = 1;

  const std::size_t window_at = kMagicBytes + 1;
  const std::size_t size_at = window_at + (single_segment ? 0 : 1) + dictionary_bytes;
  if (stored.size() < size_at + size_bytes) return NoFrame("shorter than its header");

  FrameHeader header;
  header.has_dictionary_id = dictionary_bytes != 0;
  header.has_checksum = (descriptor & 0x04) != 0;
  header.size_bytes = size_at + size_bytes;
  if (size_bytes != 0) header.content_size_bytes = ContentSize(stored.subspan(size_at, size_bytes));
  // The window of a single segment is the content itself.
  header.window_size_bytes =
      single_segment ? *header.content_size_bytes : WindowSize(stored[window_at]);
  return header;
}

Status CheckBlocks(ByteSpan stored, const FrameHeader& header) {
  const std::uint64_t size_max = std::min(header.window_size_bytes, kBlockSizeMaxBytes);
  std::uint64_t at = header.size_bytes;
  for (bool is_last = false; !is_last;) {
    if (stored.size() < at + kBlockHeaderBytes) break;
    const ByteSpan field = stored.subspan(at, kBlockHeaderBytes);
    const std::uint32_t block = std::uint32_t{LoadLe<std::uint16_t>(field, 0)} |
                                std::to_integer<std::uint32_t>(field[2]) << 16;
    const std::uint32_t type = block >> 1 & 3;
    const std::uint32_t size = block >> 3;
    if (type == kReservedBlock) return BadBlocks("has a block of the reserved type");
    if (size > size_max) {
      return BadBlocks("has a block of ", size, " bytes, the limit for its window is ", size_max);
    }
    is_last = (block & 1) != 0;
    at += kBlockHeaderBytes + (type == kRunBlock ? 1 : size);
    if (is_last && header.has_checksum) at += kChecksumBytes;
    if (is_last && at == stored.size()) return {};
  }
  return BadBlocks("does not end at the end of the ", stored.size(), " stored bytes");
}

}  // namespace sealpoint::internal::codec
