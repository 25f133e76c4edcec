// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_ENDIAN_H_
#define SEALPOINT_LIB_BASE_ENDIAN_H_

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>

#include "sealpoint/bytes.h"
#include "sealpoint/id.h"

namespace sealpoint::internal {

// Little-endian fields of fixed-size structures, independent of the host's byte order.
// Precondition: offset + sizeof(T) <= bytes.size(); the sizes are constants of the format.
template <std::unsigned_integral T>
T LoadLe(ByteSpan bytes, std::size_t offset) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |=
        static_cast<T>(static_cast<T>(std::to_integer<unsigned>(bytes[offset + i])) << (8 * i));
  }
  return value;
}

template <std::unsigned_integral T>
void StoreLe(MutableByteSpan bytes, std::size_t offset, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[offset + i] = static_cast<std::byte>((value >> (8 * i)) & 0xffu);
  }
}

template <std::derived_from<Id128> T>
T LoadId(ByteSpan bytes, std::size_t offset) {
  T id;
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), id.bytes.size(),
              id.bytes.begin());
  return id;
}

inline void StoreId(MutableByteSpan bytes, std::size_t offset, const Id128& id) {
  std::copy(id.bytes.begin(), id.bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset));
}

inline bool AllZero(ByteSpan bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_ENDIAN_H_
