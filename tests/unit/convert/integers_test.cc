// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "tests/unit/convert/convert_one.h"

namespace sealpoint::testing {
namespace {

constexpr Rounding kBoth[] = {Rounding::kExact, Rounding::kNearestEven};

template <typename T>
constexpr DType kDTypeOf = DType::kBool;
template <>
constexpr DType kDTypeOf<std::int8_t> = DType::kInt8;
template <>
constexpr DType kDTypeOf<std::int16_t> = DType::kInt16;
template <>
constexpr DType kDTypeOf<std::int32_t> = DType::kInt32;
template <>
constexpr DType kDTypeOf<std::int64_t> = DType::kInt64;
template <>
constexpr DType kDTypeOf<std::uint8_t> = DType::kUInt8;
template <>
constexpr DType kDTypeOf<std::uint16_t> = DType::kUInt16;
template <>
constexpr DType kDTypeOf<std::uint32_t> = DType::kUInt32;
template <>
constexpr DType kDTypeOf<std::uint64_t> = DType::kUInt64;

template <typename From, typename To>
void ExpectInRange(From value) {
  for (const Rounding rounding : kBoth) {
    const auto converted = ConvertOne<To>(kDTypeOf<From>, value, kDTypeOf<To>, rounding);
    ASSERT_EQ(converted.has_value(), std::in_range<To>(value)) << +value;
    ASSERT_TRUE(!converted || std::cmp_equal(*converted, value)) << +value;
  }
}

template <typename To, typename From>
void ExpectEdges() {
  // The powers of two and their neighbours, which hold the limits of every type.
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t power = std::uint64_t{1} << bit;
    for (const std::uint64_t bits : {power - 1, power, power + 1, 0 - power, ~power, 1 - power}) {
      ExpectInRange<From, To>(static_cast<From>(bits));
    }
  }
}

template <typename To, typename... Froms>
void ExpectEdgesOfAll() {
  (ExpectEdges<To, Froms>(), ...);
}

template <typename... Types>
void ExpectAllPairs() {
  (ExpectEdgesOfAll<Types, Types...>(), ...);
}

TEST(Integers, ConvertWhereTheValueIsInRange) {
  ExpectAllPairs<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                 std::uint32_t, std::uint64_t>();
}

TEST(Integers, ToFloatingPointExactlyOrRounded) {
  for (int bit = 0; bit < 64; ++bit) {
    for (const int below : {0, 23, 24, 25, 52, 53, 54}) {
      const std::uint64_t value =
          (std::uint64_t{1} << bit) + (below < bit ? std::uint64_t{1} << (bit - below) : 0);
      const auto rounded = static_cast<double>(value);  // of the processor
      EXPECT_EQ(ConvertOne<double>(DType::kUInt64, value, DType::kF64, Rounding::kNearestEven),
                rounded);
      const auto exact = ConvertOne<double>(DType::kUInt64, value, DType::kF64, Rounding::kExact);
      EXPECT_EQ(exact.has_value(), static_cast<std::uint64_t>(rounded) == value) << value;
      EXPECT_EQ(ConvertOne<float>(DType::kUInt64, value, DType::kF32, Rounding::kNearestEven),
                static_cast<float>(value));
    }
  }
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(ConvertOne<double>(DType::kInt64, kLeast, DType::kF64, Rounding::kExact), -0x1p63);
}

TEST(Integers, FromFloatingPointExactlyOrNotAtAll) {
  const auto to_i8 = [](double value, Rounding rounding) {
    return ConvertOne<std::int8_t>(DType::kF64, value, DType::kInt8, rounding);
  };
  for (const Rounding rounding : kBoth) {
    for (int value = -128; value <= 127; ++value) EXPECT_EQ(to_i8(value, rounding), value);
    for (const double value : {128.0, -129.0, 0.5, 1e300, 0x1p63, 0x1p64, 0x1p-1000, -0.0,
                               std::numeric_limits<double>::infinity(), std::nan("")}) {
      EXPECT_EQ(to_i8(value, rounding), std::nullopt) << value;
    }
    EXPECT_EQ(
        ConvertOne<std::uint64_t>(DType::kF64, 0x1.fffffffffffffp63, DType::kUInt64, rounding),
        0xfffffffffffff800u);
    EXPECT_EQ(ConvertOne<std::uint64_t>(DType::kF64, 0x1p64, DType::kUInt64, rounding),
              std::nullopt);
    EXPECT_EQ(ConvertOne<std::uint64_t>(DType::kF64, -1.0, DType::kUInt64, rounding), std::nullopt);
    EXPECT_EQ(ConvertOne<std::int64_t>(DType::kF64, -0x1p63, DType::kInt64, rounding),
              std::numeric_limits<std::int64_t>::min());
  }
}

}  // namespace
}  // namespace sealpoint::testing
