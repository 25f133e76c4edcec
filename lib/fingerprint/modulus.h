// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FINGERPRINT_MODULUS_H_
#define SEALPOINT_LIB_FINGERPRINT_MODULUS_H_

#include <cstdint>

#include "lib/base/on_both.h"

// Arithmetic modulo the prime 2^61 - 1. Plain C++17, for the host and for nvcc.
namespace sealpoint::internal::fingerprint {

__extension__ using Wide = unsigned __int128;
constexpr std::uint64_t kModulus = (std::uint64_t{1} << 61) - 1;

// Any value.
SEALPOINT_ON_BOTH constexpr std::uint64_t Reduce(Wide x) {
  // 2^61 is 1: the second fold leaves less than 2^61 + 2^7.
  const Wide once = (x & kModulus) + (x >> 61);
  const auto twice =
      static_cast<std::uint64_t>(once & kModulus) + static_cast<std::uint64_t>(once >> 61);
  return twice >= kModulus ? twice - kModulus : twice;
}

// Values below the modulus.
SEALPOINT_ON_BOTH constexpr std::uint64_t Multiply(std::uint64_t a, std::uint64_t b) {
  return Reduce(Wide{a} * b);
}
SEALPOINT_ON_BOTH constexpr std::uint64_t Add(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum >= kModulus ? sum - kModulus : sum;
}

}  // namespace sealpoint::internal::fingerprint

#endif  // SEALPOINT_LIB_FINGERPRINT_MODULUS_H_
