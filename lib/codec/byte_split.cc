// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "lib/base/macros.h"
#include "lib/codec/chunk_codec.h"

namespace sealpoint::internal {
namespace {

// Elements that are handled plane by plane while they are in the first-level cache.
constexpr std::size_t kTileElements = 1024;

// The element size is a constant for the sizes that occur, so that the compiler turns the strided
// accesses into shuffles.
template <std::size_t kElementSize>
void SplitElements(std::size_t count, const std::byte* __restrict raw, std::byte* __restrict out) {
  for (std::size_t tile = 0; tile < count; tile += kTileElements) {
    const std::size_t end = std::min(tile + kTileElements, count);
    for (std::size_t plane = 0; plane < kElementSize; ++plane) {
      const std::byte* __restrict from = raw + plane;
      std::byte* __restrict to = out + plane * count;
      for (std::size_t i = tile; i < end; ++i) to[i] = from[i * kElementSize];
    }
  }
}

template <std::size_t kElementSize>
void JoinElements(std::size_t count, const std::byte* __restrict split, std::byte* __restrict raw) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t plane = 0; plane < kElementSize; ++plane) {
      raw[i * kElementSize + plane] = split[plane * count + i];
    }
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

}  // namespace sealpoint::internal
