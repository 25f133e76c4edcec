// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CONTAINER_NOISE_H_
#define SEALPOINT_TESTS_SUPPORT_CONTAINER_NOISE_H_

#include <cstdint>

#include "sealpoint/bytes.h"

namespace sealpoint::testing {

// `size` bytes that depend on the seed and look like noise.
inline Bytes NoiseBytes(std::uint64_t seed, std::uint64_t size) {
  Bytes bytes(size);
  // splitmix64, by Sebastiano Vigna (public domain).
  for (std::byte& byte : bytes) {
    std::uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    byte = static_cast<std::byte>((z ^ (z >> 31)) & 0xffu);
  }
  return bytes;
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CONTAINER_NOISE_H_
