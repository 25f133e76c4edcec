// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CONVERT_NUMBER_H_
#define SEALPOINT_LIB_CONVERT_NUMBER_H_

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sealpoint/dtype.h"

// A decoded value of any dtype, with a pair of functions per dtype to convert from and to it.
// Everything is integer arithmetic, so that the program's floating-point mode (rounding, flush to
// zero) cannot change loaded values. Do not use floating-point registers here.

namespace sealpoint::internal::convert {

struct Number {
  enum class Kind : std::uint8_t { kFinite, kInfinite, kNan };
  // For a NaN the payload, from the highest bit on; for an infinity 0.
  std::uint64_t significand = 0;
  std::int32_t exponent = 0;  // the value is significand * 2^exponent
  Kind kind = Kind::kFinite;
  bool is_negative = false;  // zero has a sign too
};

// The values of a floating-point format that are not finite.
enum class Specials : std::uint8_t {
  kInfinityAndNan,  // the greatest exponent, as IEEE 754 has it
  kNan,             // all bits set, with either sign
  kUnsignedNan,     // the pattern of -0; the dtype has no negative zero
};

struct FloatFormat {
  int size_bits = 0;
  int exponent_bits = 0;
  int bias = 0;
  Specials specials = Specials::kInfinityAndNan;

  constexpr int mantissa_bits() const { return size_bits - 1 - exponent_bits; }
  constexpr std::uint64_t sign_bit() const { return std::uint64_t{1} << (size_bits - 1); }
  constexpr std::uint64_t exponent_mask() const { return (std::uint64_t{1} << exponent_bits) - 1; }
  // Without its sign.
  constexpr std::uint64_t greatest_finite() const {
    if (specials == Specials::kInfinityAndNan) return (exponent_mask() << mantissa_bits()) - 1;
    return sign_bit() - (specials == Specials::kNan ? 2 : 1);
  }
};

inline constexpr FloatFormat kF16Format{16, 5, 15};
inline constexpr FloatFormat kBf16Format{16, 8, 127};
inline constexpr FloatFormat kF32Format{32, 8, 127};
inline constexpr FloatFormat kF64Format{64, 11, 1023};
inline constexpr FloatFormat kF8E4M3FnFormat{8, 4, 7, Specials::kNan};
inline constexpr FloatFormat kF8E5M2Format{8, 5, 15};
inline constexpr FloatFormat kF8E4M3FnuzFormat{8, 4, 8, Specials::kUnsignedNan};
inline constexpr FloatFormat kF8E5M2FnuzFormat{8, 5, 16, Specials::kUnsignedNan};

template <int kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 1, std::uint8_t,
    std::conditional_t<kBytes == 2, std::uint16_t,
                       std::conditional_t<kBytes == 4, std::uint32_t, std::uint64_t>>>;

// Each dtype below has Stored (its bits), Decode, and Encode, which returns false if the dtype
// lacks the value and the rounding forbids another one.

template <FloatFormat kFormat>
struct FloatCodec {
  using Stored = UnsignedOf<kFormat.size_bits / 8>;
  using Kind = Number::Kind;
  static constexpr int kMantissaBits = kFormat.mantissa_bits();
  static constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << kMantissaBits) - 1;
  static constexpr std::uint64_t kNanExponent = kFormat.exponent_mask() << kMantissaBits;

  static Number Decode(Stored stored) {
    const std::uint64_t bits = stored;
    const std::uint64_t magnitude = bits & (kFormat.sign_bit() - 1);
    const std::uint64_t exponent = magnitude >> kMantissaBits;
    const std::uint64_t mantissa = magnitude & kMantissaMask;
    Number number{.is_negative = (bits & kFormat.sign_bit()) != 0};
    if (magnitude > kFormat.greatest_finite()) {
      const bool is_infinite = kFormat.specials == Specials::kInfinityAndNan && mantissa == 0;
      number.kind = is_infinite ? Kind::kInfinite : Kind::kNan;
      if (kFormat.specials == Specials::kInfinityAndNan) {
        number.significand = mantissa << (64 - kMantissaBits);
      }
      return number;
    }
    if (kFormat.specials == Specials::kUnsignedNan && bits == kFormat.sign_bit()) {
      return {.kind = Kind::kNan};
    }
    const std::uint64_t implicit = exponent == 0 ? 0 : std::uint64_t{1} << kMantissaBits;
    number.significand = mantissa | implicit;
    number.exponent = static_cast<int>(exponent == 0 ? 1 : exponent) - kFormat.bias - kMantissaBits;
    return number;
  }

  static bool Encode(const Number& number, Rounding rounding, Stored& stored) {
    const bool may_round = rounding == Rounding::kNearestEven;
    if (number.kind == Kind::kNan) {
      stored = Nan(number);
      return true;
    }
    if (number.kind == Kind::kInfinite) {
      stored = Overflow(number);
      return may_round || kFormat.specials == Specials::kInfinityAndNan;
    }
    std::uint64_t magnitude = 0;
    const bool is_exact = number.significand == 0 || RoundToEven(number, magnitude);
    if (magnitude > kFormat.greatest_finite()) {
      stored = Overflow(number);
      return may_round;
    }
    const bool loses_sign = kFormat.specials == Specials::kUnsignedNan && magnitude == 0;
    const bool has_sign = number.is_negative && !loses_sign;
    const std::uint64_t sign = std::uint64_t{has_sign} << (kFormat.size_bits - 1);
    stored = static_cast<Stored>(magnitude | sign);
    return may_round || (is_exact && has_sign == number.is_negative);
  }

 private:
  // Computes the bits of the nearest value, without its sign. A mantissa that rounds up to the next
  // power of two carries into the exponent, which is correct: the fields are adjacent, and the
  // carried mantissa is zero. Returns whether the result is exact. Precondition: not zero.
  static bool RoundToEven(const Number& number, std::uint64_t& magnitude) {
    const int width = 64 - std::countl_zero(number.significand);
    constexpr int kLeastExponent = 1 - kFormat.bias;
    const int exponent = std::max(number.exponent + width - 1, kLeastExponent);
    const int shift = exponent - kMantissaBits - number.exponent;
    const auto biased = static_cast<std::uint64_t>(exponent - kLeastExponent) << kMantissaBits;
    if (shift <= 0) {
      magnitude = biased + (number.significand << -shift);
      return true;
    }
    // Far below half of the smallest value: a significand of 64 bits belongs to an integer, which
    // is not that small.
    if (shift >= 64) return false;
    const std::uint64_t kept = number.significand >> shift;
    const std::uint64_t rest = number.significand << (64 - shift);  // from the highest bit on
    constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
    // Branch-free, because the branches would be unpredictable.
    const auto is_above = static_cast<std::uint64_t>(rest > kHalf);
    const auto is_tie = static_cast<std::uint64_t>(rest == kHalf);
    magnitude = biased + kept + (is_above | (is_tie & kept));
    return rest == 0;
  }

  static Stored Overflow(const Number& number) {
    if (kFormat.specials != Specials::kInfinityAndNan) {
      return Nan({.kind = Kind::kNan, .is_negative = number.is_negative});
    }
    return static_cast<Stored>(kNanExponent | (number.is_negative ? kFormat.sign_bit() : 0));
  }

  // Keeps the sign and as much of the payload as fits. A payload that is cut to zero would read as
  // infinity, so the quiet bit is set then.
  static Stored Nan(const Number& number) {
    if (kFormat.specials == Specials::kUnsignedNan) return static_cast<Stored>(kFormat.sign_bit());
    std::uint64_t mantissa = kMantissaMask;
    if (kFormat.specials == Specials::kInfinityAndNan) {
      mantissa = number.significand >> (64 - kMantissaBits);
      if (mantissa == 0) mantissa = std::uint64_t{1} << (kMantissaBits - 1);
    }
    const std::uint64_t sign = number.is_negative ? kFormat.sign_bit() : 0;
    return static_cast<Stored>(sign | kNanExponent | mantissa);
  }
};

// Powers of two from 2^-127 to 2^127 without a sign, and one NaN. There is no zero to round to, so
// the conversion is always exact.
struct F8E8M0FnuCodec {
  using Stored = std::uint8_t;
  static constexpr int kBias = 127;
  static constexpr Stored kNan = 255;

  static Number Decode(Stored stored) {
    if (stored == kNan) return {.kind = Number::Kind::kNan};
    return {.significand = 1, .exponent = stored - kBias};
  }

  static bool Encode(const Number& number, Rounding, Stored& stored) {
    stored = kNan;
    if (number.kind == Number::Kind::kNan) return true;
    if (number.is_negative) return false;
    if (!std::has_single_bit(number.significand)) return false;  // zero and infinity have none
    const int exponent = number.exponent + std::countr_zero(number.significand);
    if (exponent < -kBias || exponent > kBias) return false;
    stored = static_cast<Stored>(exponent + kBias);
    return true;
  }
};

// Always exact: an integer dtype has no signed zero, no infinity and no NaN.
template <std::integral Integer>
struct IntegerCodec {
  using Stored = std::make_unsigned_t<Integer>;

  static Number Decode(Stored stored) {
    const bool is_negative = std::is_signed_v<Integer> && static_cast<Integer>(stored) < 0;
    const std::uint64_t magnitude =
        is_negative ? 0 - static_cast<std::uint64_t>(static_cast<Integer>(stored))
                    : std::uint64_t{stored};
    return {.significand = magnitude, .is_negative = is_negative};
  }

  static bool Encode(const Number& number, Rounding, Stored& stored) {
    stored = 0;
    if (number.kind != Number::Kind::kFinite) return false;
    if (number.significand == 0) return !number.is_negative;
    const int zeros = std::countr_zero(number.significand);
    if (number.exponent < -zeros) return false;  // a fraction
    if (number.exponent > std::countl_zero(number.significand)) return false;
    const std::uint64_t magnitude = number.exponent < 0 ? number.significand >> -number.exponent
                                                        : number.significand << number.exponent;
    constexpr std::uint64_t kGreatest = std::numeric_limits<Integer>::max();
    const std::uint64_t negative_greatest = std::is_signed_v<Integer> ? kGreatest + 1 : 0;
    if (magnitude > (number.is_negative ? negative_greatest : kGreatest)) return false;
    stored = static_cast<Stored>(number.is_negative ? 0 - magnitude : magnitude);
    return true;
  }
};

}  // namespace sealpoint::internal::convert

#endif  // SEALPOINT_LIB_CONVERT_NUMBER_H_
