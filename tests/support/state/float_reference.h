// SPDX-License-Identifier: Apache-2.0
//
// Floating-point formats by their definition, in the arithmetic of double: every value of a small
// format in a list, and rounding as a search in it. Shares nothing with lib/convert.
#ifndef SEALPOINT_TESTS_SUPPORT_STATE_FLOAT_REFERENCE_H_
#define SEALPOINT_TESTS_SUPPORT_STATE_FLOAT_REFERENCE_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "sealpoint/dtype.h"

namespace sealpoint::testing {

struct SmallFloat {
  DType dtype;
  int exponent_bits;
  int mantissa_bits;
  int bias;
  std::uint32_t infinity;  // pattern without its sign; 0: it has none
  std::uint32_t greatest;  // the greatest finite pattern without its sign
  bool has_negative_zero = true;

  std::uint32_t pattern_count() const { return 2 * sign(); }
  std::uint32_t sign() const { return 1u << (exponent_bits + mantissa_bits); }

  bool IsNan(std::uint32_t pattern) const {
    if (!has_negative_zero) return pattern == sign();
    const std::uint32_t magnitude = pattern % sign();
    return magnitude > greatest && (infinity == 0 || magnitude != infinity);
  }
  // Precondition: no NaN.
  double ValueOf(std::uint32_t pattern) const {
    const std::uint32_t magnitude = pattern % sign();
    const double sign_of = pattern < sign() ? 1.0 : -1.0;
    if (infinity != 0 && magnitude == infinity) {
      return sign_of * std::numeric_limits<double>::infinity();
    }
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double fraction =
        static_cast<double>(magnitude % (1u << mantissa_bits)) / std::exp2(mantissa_bits);
    const double significand = exponent == 0 ? fraction : 1.0 + fraction;
    return sign_of * significand * std::exp2(exponent == 0 ? 1 - bias : exponent - bias);
  }
  // The finite values that are not negative, ascending; their places are their patterns.
  std::vector<double> Values() const {
    std::vector<double> values;
    for (std::uint32_t pattern = 0; pattern <= greatest; ++pattern) {
      values.push_back(ValueOf(pattern));
    }
    return values;
  }
};

inline const std::vector<SmallFloat>& SmallFloats() {
  static const std::vector<SmallFloat> all = {
      {DType::kF16, 5, 10, 15, 0x7c00, 0x7bff},      {DType::kBf16, 8, 7, 127, 0x7f80, 0x7f7f},
      {DType::kF8E4M3Fn, 4, 3, 7, 0, 0x7e},          {DType::kF8E5M2, 5, 2, 15, 0x7c, 0x7b},
      {DType::kF8E4M3Fnuz, 4, 3, 8, 0, 0x7f, false}, {DType::kF8E5M2Fnuz, 5, 2, 16, 0, 0x7f, false},
  };
  return all;
}

// The pattern of the value nearest to a number, of two the even one; nothing for NaN. `values` are
// those of the format.
inline std::optional<std::uint32_t> NearestPattern(const SmallFloat& format,
                                                   const std::vector<double>& values, double x) {
  if (std::isnan(x)) return std::nullopt;
  const double magnitude = std::fabs(x);
  // What would come behind the greatest value, if there were one more.
  const double beyond = values.back() + (values.back() - values[values.size() - 2]);
  std::size_t above = 0;
  if (magnitude >= values.back()) {
    above = values.size();
  } else {
    std::size_t low = 0;
    for (std::size_t high = values.size(); low < high;) {
      const std::size_t middle = (low + high) / 2;
      if (values[middle] <= magnitude) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    above = low;
  }
  const std::size_t below = above - 1;
  const double upper = above == values.size() ? beyond : values[above];
  const double to_below = magnitude - values[below];
  const double to_above = upper - magnitude;
  const bool is_up = to_above < to_below || (to_above == to_below && below % 2 == 1);
  const auto nearest = static_cast<std::uint32_t>(is_up ? above : below);
  const bool is_negative = std::signbit(x);
  if (nearest > format.greatest) {
    if (format.infinity == 0) return std::nullopt;
    return format.infinity | (is_negative ? format.sign() : 0);
  }
  if (nearest == 0 && !format.has_negative_zero) return 0;
  return nearest | (is_negative ? format.sign() : 0);
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STATE_FLOAT_REFERENCE_H_
