// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FINGERPRINT_FIELD_H_
#define SEALPOINT_LIB_FINGERPRINT_FIELD_H_

#include <array>
#include <cstdint>

#include "sealpoint/fingerprint.h"

// Arithmetic modulo 2^61 - 1, for both sets of coefficients at once.

namespace sealpoint::internal::fingerprint {

__extension__ using Wide = unsigned __int128;
// A value of each set, below the modulus.
using Pair = std::array<std::uint64_t, 2>;

// Any value.
constexpr std::uint64_t Reduce(Wide x) {
  constexpr std::uint64_t p = Fingerprint::kModulus;
  // 2^61 is 1: the second fold leaves less than 2^61 + 2^7.
  const Wide once = (x & p) + (x >> 61);
  const auto twice = static_cast<std::uint64_t>(once & p) + static_cast<std::uint64_t>(once >> 61);
  return twice >= p ? twice - p : twice;
}

constexpr std::uint64_t Multiply(std::uint64_t a, std::uint64_t b) { return Reduce(Wide{a} * b); }
constexpr Pair Multiply(const Pair& a, const Pair& b) {
  return {Multiply(a[0], b[0]), Multiply(a[1], b[1])};
}

constexpr std::uint64_t Add(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum >= Fingerprint::kModulus ? sum - Fingerprint::kModulus : sum;
}
constexpr Pair Add(const Pair& a, const Pair& b) { return {Add(a[0], b[0]), Add(a[1], b[1])}; }

}  // namespace sealpoint::internal::fingerprint

#endif  // SEALPOINT_LIB_FINGERPRINT_FIELD_H_
