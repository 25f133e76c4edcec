// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_CONVERSION_H_
#define SEALPOINT_CONVERSION_H_

#include <cstdint>

#include "sealpoint/dtype.h"

namespace sealpoint {

// How a value is converted that the destination's dtype does not have.
enum class Rounding : std::uint8_t {
  // An error that names the element. Converting back gives the same value; a NaN stays a NaN.
  kExact,
  // A floating-point dtype takes the nearest of its values, of two the one whose last bit is 0.
  // Beyond its greatest it takes infinity, or NaN if it has no infinity (as torch does). Any
  // other dtype converts exactly all the same.
  kNearestEven,
};

// A change of dtype that a reader asks for. docs/guides/loading.md has the table of what converts
// to what: integers, floating-point dtypes, and complex dtypes among themselves. bool, f4_e2m1x2
// and what is not registered do not convert.
struct Conversion {
  DType to{};
  Rounding rounding = Rounding::kExact;
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

}  // namespace sealpoint

#endif  // SEALPOINT_CONVERSION_H_
