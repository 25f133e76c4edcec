// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_DEVICE_PATTERN_H_
#define SEALPOINT_TESTS_UNIT_DEVICE_PATTERN_H_

#include <cstddef>

#include "sealpoint/bytes.h"

namespace sealpoint::testing {

// Bytes of which neighbours, and those at distances of powers of two, differ.
inline Bytes Pattern(std::size_t size, unsigned first = 1) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>((first + i * 7 + i / 251) & 0xFF);
  }
  return bytes;
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_DEVICE_PATTERN_H_
