// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FINGERPRINT_FIELD_H_
#define SEALPOINT_LIB_FINGERPRINT_FIELD_H_

#include <array>
#include <cstdint>

#include "lib/fingerprint/modulus.h"
#include "sealpoint/fingerprint.h"

namespace sealpoint::internal::fingerprint {

static_assert(kModulus == Fingerprint::kModulus);

// A value of each set of coefficients, below the modulus.
using Pair = std::array<std::uint64_t, 2>;

constexpr Pair Multiply(const Pair& a, const Pair& b) {
  return {Multiply(a[0], b[0]), Multiply(a[1], b[1])};
}
constexpr Pair Add(const Pair& a, const Pair& b) { return {Add(a[0], b[0]), Add(a[1], b[1])}; }

}  // namespace sealpoint::internal::fingerprint

#endif  // SEALPOINT_LIB_FINGERPRINT_FIELD_H_
