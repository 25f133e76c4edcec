// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace char_lm {

// FNV-1a, 64 bits (Fowler, Noll, Vo). For printing and for telling a changed corpus; equality of
// parameters is decided by SameBits.
inline std::uint64_t Fingerprint(std::span<const std::byte> bytes) {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const std::byte value : bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x100000001B3U;
  }
  return hash;
}

// True if both hold the same bit patterns (so -0.0 differs from 0.0, and a NaN equals itself).
inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace char_lm
