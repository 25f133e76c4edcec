// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_MIX_H_
#define SEALPOINT_LIB_BASE_MIX_H_

#include <cstdint>

namespace sealpoint::internal {

// A mixing function for sums and hash tables within one job. Not for anything that is stored, nor
// for input that an adversary chooses. The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
inline constexpr std::uint64_t kMixIncrement = 0x9e3779b97f4a7c15;
constexpr std::uint64_t Mix(std::uint64_t x) {
  x += kMixIncrement;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Extends the hash of a sequence of numbers by the next number.
constexpr std::uint64_t MixWith(std::uint64_t hash, std::uint64_t next) {
  return Mix(hash ^ Mix(next));
}

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_MIX_H_
