// SPDX-License-Identifier: Apache-2.0
#include "lib/codec/frame_header.h"

#include <array>
#include <cstddef>

#include "lib/base/endian.h"
#include "lib/base/errors.h"

namespace sealpoint::internal {
namespace {

constexpr std::uint32_t kFrameMagic = 0xfd2fb528;
constexpr std::size_t kMagicBytes = 4;

Status NoFrame(std::string_view what) {
  return RuleError(Code::kCorrupt, "R-COD-02", "stored chunk is not a zstd frame: ", what);
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
  if (size_bytes != 0) header.content_size_bytes = ContentSize(stored.subspan(size_at, size_bytes));
  // The window of a single segment is the content itself.
  header.window_size_bytes =
      single_segment ? *header.content_size_bytes : WindowSize(stored[window_at]);
  return header;
}

}  // namespace sealpoint::internal
