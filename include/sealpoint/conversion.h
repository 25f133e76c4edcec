// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_CONVERSION_H_
#define SEALPOINT_CONVERSION_H_

#include <cstdint>

#include "sealpoint/dtype.h"

namespace sealpoint {

// Conversion of values that the destination's dtype cannot represent.
enum class Rounding : std::uint8_t {
  // Fails and names the element. Converting back gives the same value; a NaN remains a NaN.
  kExact,
  // Rounds to the nearest value of a floating-point dtype, ties to even. Values out of range become
  // infinity, or NaN if the dtype has no infinity (as in torch). Conversion to any other dtype must
  // still be exact.
  kNearestEven,
};

// A change of dtype requested by a reader. Integers, floating-point dtypes and complex dtypes
// convert among themselves; see the table in docs/guides/loading.md. bool, f4_e2m1x2 and
// unregistered dtypes do not convert.
struct Conversion {
  DType to{};
  Rounding rounding = Rounding::kExact;
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_CONVERSION_H_
