// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FINGERPRINT_COEFFICIENTS_H_
#define SEALPOINT_LIB_FINGERPRINT_COEFFICIENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/fingerprint/field.h"

namespace sealpoint::internal::fingerprint {

// The coefficients of the indices along one dimension, counted from the last one: c of
// spec/fingerprint.md §1. Along the last dimension an index is that of a word.
class Dimension {
 public:
  static constexpr std::uint64_t kBase = 32;  // of the digits
  static constexpr std::size_t kDigits = 13;  // of 64 bits
  static constexpr std::size_t kDimensions = 32;

  // Built at the first use, and kept. Thread-safe. Precondition: d < kDimensions.
  static const Dimension& FromLast(std::size_t d);
  Dimension(const Dimension&) = delete;
  Dimension& operator=(const Dimension&) = delete;

  // c(index), for both sets.
  Pair operator[](std::uint64_t index) const {
    return Multiply(OfHighDigits(index), OfLastDigit(index));
  }
  // Its factors: of all digits but the last one, and of the last one.
  Pair OfHighDigits(std::uint64_t index) const;
  const Pair& OfLastDigit(std::uint64_t index) const { return digits_[0][index % kBase]; }
  // The coefficients of the values of a digit, counted from the last one.
  const std::array<Pair, kBase>& OfDigit(std::size_t digit) const { return digits_[digit]; }

 private:
  explicit Dimension(std::uint32_t d);

  std::array<std::array<Pair, kBase>, kDigits> digits_{};
};

}  // namespace sealpoint::internal::fingerprint

#endif  // SEALPOINT_LIB_FINGERPRINT_COEFFICIENTS_H_
