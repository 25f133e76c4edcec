// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__aarch64__) && defined(__ARM_NEON)
#define SEALPOINT_NEON
#include <arm_neon.h>
#endif

#include "lib/base/macros.h"
#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal::codec {
namespace {

// Element sizes are powers of two: an element of N bytes is split by separating even from odd bytes
// log2(N) times. On x86 compilers vectorise this one step (g++ 12 and clang 19 do at -O3); a loop
// with a larger stride becomes scalar code or slow shuffles. On aarch64 NEON has instructions for
// it.

// Elements handled at a time, so that the intermediate results stay in the first-level cache.
constexpr std::size_t kTileElements = 512;

#if defined(SEALPOINT_NEON)
constexpr std::size_t kVectorBytes = 16;
#endif

constexpr bool kLittleEndian = std::endian::native == std::endian::little;
constexpr unsigned kEvenShift = kLittleEndian ? 0 : 8;
constexpr unsigned kOddShift = kLittleEndian ? 8 : 0;

void Part(std::size_t pairs, const std::byte* __restrict from, std::byte* __restrict evens,
          std::byte* __restrict odds) {
  std::size_t i = 0;
#if defined(SEALPOINT_NEON)
  for (; i + kVectorBytes <= pairs; i += kVectorBytes) {
    const uint8x16x2_t both = vld2q_u8(reinterpret_cast<const std::uint8_t*>(from + 2 * i));
    vst1q_u8(reinterpret_cast<std::uint8_t*>(evens + i), both.val[0]);
    vst1q_u8(reinterpret_cast<std::uint8_t*>(odds + i), both.val[1]);
  }
#endif
  for (; i < pairs; ++i) {
    std::uint16_t pair;
    std::memcpy(&pair, from + 2 * i, sizeof(pair));
    evens[i] = static_cast<std::byte>(pair >> kEvenShift);
    odds[i] = static_cast<std::byte>(pair >> kOddShift);
  }
}

void Interleave(std::size_t pairs, const std::byte* __restrict evens,
                const std::byte* __restrict odds, std::byte* __restrict to) {
  std::size_t i = 0;
#if defined(SEALPOINT_NEON)
  for (; i + kVectorBytes <= pairs; i += kVectorBytes) {
    const uint8x16x2_t both = {{vld1q_u8(reinterpret_cast<const std::uint8_t*>(evens + i)),
                                vld1q_u8(reinterpret_cast<const std::uint8_t*>(odds + i))}};
    vst2q_u8(reinterpret_cast<std::uint8_t*>(to + 2 * i), both);
  }
#endif
  for (; i < pairs; ++i) {
    const auto pair = static_cast<std::uint16_t>(std::to_integer<unsigned>(evens[i]) << kEvenShift |
                                                 std::to_integer<unsigned>(odds[i]) << kOddShift);
    std::memcpy(to + 2 * i, &pair, sizeof(pair));
  }
}

// Writes plane p of `count` <= kTileElements elements to out + p * stride. The even bytes form
// elements of half the size, and their plane q is plane 2q here; the odd bytes give the planes
// 2q + 1. `work` has room for two tiles: the halves take one, the recursion below takes
// 1/2 + 1/4 + … of the other.
template <std::size_t kElementSize>
void SplitTile(std::size_t count, const std::byte* raw, std::byte* out, std::size_t stride,
               std::byte* work) {
  if constexpr (kElementSize == 2) {
    Part(count, raw, out, out + stride);
  } else {
    const std::size_t half = count * kElementSize / 2;
    std::byte* const below = work + 2 * half;
    Part(half, raw, work, work + half);
    SplitTile<kElementSize / 2>(count, work, out, 2 * stride, below);
    SplitTile<kElementSize / 2>(count, work + half, out + stride, 2 * stride, below);
  }
}

template <std::size_t kElementSize>
void JoinTile(std::size_t count, const std::byte* split, std::size_t stride, std::byte* raw,
              std::byte* work) {
  if constexpr (kElementSize == 2) {
    Interleave(count, split, split + stride, raw);
  } else {
    const std::size_t half = count * kElementSize / 2;
    std::byte* const below = work + 2 * half;
    JoinTile<kElementSize / 2>(count, split, 2 * stride, work, below);
    JoinTile<kElementSize / 2>(count, split + stride, 2 * stride, work + half, below);
    Interleave(half, work, work + half, raw);
  }
}

template <std::size_t kElementSize>
void SplitElements(std::size_t count, const std::byte* raw, std::byte* out) {
  std::array<std::byte, 2 * kTileElements * kElementSize> work{};
  for (std::size_t i = 0; i < count; i += kTileElements) {
    SplitTile<kElementSize>(std::min(kTileElements, count - i), raw + i * kElementSize, out + i,
                            count, work.data());
  }
}

template <std::size_t kElementSize>
void JoinElements(std::size_t count, const std::byte* split, std::byte* raw) {
  std::array<std::byte, 2 * kTileElements * kElementSize> work{};
  for (std::size_t i = 0; i < count; i += kTileElements) {
    JoinTile<kElementSize>(std::min(kTileElements, count - i), split + i, count,
                           raw + i * kElementSize, work.data());
  }
}

void SplitAnySize(std::size_t element_size, std::size_t count, const std::byte* raw,
                  std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t plane = 0; plane < element_size; ++plane) {
      out[plane * count + i] = raw[i * element_size + plane];
    }
  }
}

void JoinAnySize(std::size_t element_size, std::size_t count, const std::byte* split,
                 std::byte* raw) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t plane = 0; plane < element_size; ++plane) {
      raw[i * element_size + plane] = split[plane * count + i];
    }
  }
}

void CopyTail(std::size_t begin, ByteSpan from, MutableByteSpan to) {
  std::copy(from.begin() + static_cast<std::ptrdiff_t>(begin), from.end(),
            to.begin() + static_cast<std::ptrdiff_t>(begin));
}

}  // namespace

void SplitBytes(std::uint32_t element_size, ByteSpan raw, MutableByteSpan out) {
  SEALPOINT_CHECK(element_size >= 1 && raw.size() == out.size());
  const std::size_t count = raw.size() / element_size;
  switch (element_size) {
    case 1:
      break;
    case 2:
      SplitElements<2>(count, raw.data(), out.data());
      break;
    case 4:
      SplitElements<4>(count, raw.data(), out.data());
      break;
    case 8:
      SplitElements<8>(count, raw.data(), out.data());
      break;
    case 16:
      SplitElements<16>(count, raw.data(), out.data());
      break;
    default:
      SplitAnySize(element_size, count, raw.data(), out.data());
  }
  CopyTail(element_size == 1 ? 0 : count * element_size, raw, out);
}

void JoinBytes(std::uint32_t element_size, ByteSpan split, MutableByteSpan raw) {
  SEALPOINT_CHECK(element_size >= 1 && split.size() == raw.size());
  const std::size_t count = split.size() / element_size;
  switch (element_size) {
    case 1:
      break;
    case 2:
      JoinElements<2>(count, split.data(), raw.data());
      break;
    case 4:
      JoinElements<4>(count, split.data(), raw.data());
      break;
    case 8:
      JoinElements<8>(count, split.data(), raw.data());
      break;
    case 16:
      JoinElements<16>(count, split.data(), raw.data());
      break;
    default:
      JoinAnySize(element_size, count, split.data(), raw.data());
  }
  CopyTail(element_size == 1 ? 0 : count * element_size, split, raw);
}

std::string_view ByteSplitInstructions() {
#if defined(SEALPOINT_NEON)
  return "NEON";
#elif defined(__SSE2__) && defined(__OPTIMIZE__)
  return "SSE2";
#else
  return "scalar code";
#endif
}

}  // namespace sealpoint::internal::codec
