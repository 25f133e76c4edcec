// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_CHECKED_MATH_H_
#define SEALPOINT_LIB_BASE_CHECKED_MATH_H_

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>

namespace sealpoint::internal {

// Arithmetic on numbers from a file or a caller. The result is empty if it does not fit.
template <std::unsigned_integral T>
constexpr std::optional<T> CheckedAdd(T a, T b) {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::unsigned_integral T>
constexpr std::optional<T> CheckedMul(T a, T b) {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// The product, or empty if it exceeds `max`. Precondition: a > 0.
constexpr std::optional<std::uint64_t> MulUpTo(std::uint64_t a, std::uint64_t b,
                                               std::uint64_t max) {
  if (b > max / a) return std::nullopt;
  return a * b;
}

// True if [offset, offset + length) is in [0, size), without overflow.
constexpr bool RangeFits(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return offset <= size && length <= size - offset;
}

// Preconditions: divisor, alignment > 0; alignment is a power of two and the result fits.
constexpr std::uint64_t DivideRoundUp(std::uint64_t value, std::uint64_t divisor) {
  return value / divisor + (value % divisor != 0 ? 1 : 0);
}
constexpr std::uint64_t AlignUp(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_CHECKED_MATH_H_
