// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/support/state/float_reference.h"
#include "tests/unit/convert/convert_one.h"

// Every value of every format of at most 16 bits.

namespace sealpoint::testing {
namespace {

TEST(Widening, EveryValueIsThatOfItsDefinition) {
  for (const SmallFloat& format : SmallFloats()) {
    for (std::uint32_t pattern = 0; pattern < format.pattern_count(); ++pattern) {
      const auto wide = FromPattern<double>(format.dtype, pattern, DType::kF64, kExact);
      ASSERT_TRUE(wide.has_value()) << DTypeName(format.dtype) << " " << pattern;
      if (format.IsNan(pattern)) {
        ASSERT_TRUE(std::isnan(*wide)) << DTypeName(format.dtype) << " " << pattern;
      } else {
        // As bits, so that -0 is not 0.
        ASSERT_EQ(std::bit_cast<std::uint64_t>(*wide),
                  std::bit_cast<std::uint64_t>(format.ValueOf(pattern)))
            << DTypeName(format.dtype) << " " << pattern;
      }
    }
  }
}

TEST(Widening, ToF32IsTheSameAsToF64) {
  for (const SmallFloat& format : SmallFloats()) {
    for (std::uint32_t pattern = 0; pattern < format.pattern_count(); ++pattern) {
      if (format.IsNan(pattern)) continue;
      const auto wide = FromPattern<float>(format.dtype, pattern, DType::kF32, kExact);
      ASSERT_EQ(static_cast<double>(wide.value()), format.ValueOf(pattern));
    }
  }
}

TEST(Widening, EveryPatternComesBack) {
  for (const SmallFloat& format : SmallFloats()) {
    for (std::uint32_t pattern = 0; pattern < format.pattern_count(); ++pattern) {
      const auto f32 = FromPattern<float>(format.dtype, pattern, DType::kF32, kExact);
      ASSERT_EQ(ToPattern(DType::kF32, *f32, format.dtype, kExact), pattern);
      const auto f64 = FromPattern<double>(format.dtype, pattern, DType::kF64, kExact);
      ASSERT_EQ(ToPattern(DType::kF64, *f64, format.dtype, kExact), pattern);
    }
  }
}

TEST(Widening, SingleToDoubleIsThatOfTheProcessor) {
  // Steps that meet every exponent with many mantissas.
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 65521) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) continue;
    const auto wide = ConvertOne<double>(DType::kF32, value, DType::kF64, kExact);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(wide.value()),
              std::bit_cast<std::uint64_t>(static_cast<double>(value)));
  }
}

TEST(Widening, ASignallingNanKeepsItsBits) {
  constexpr std::uint32_t kSignalling = 0xff800001;
  const auto wide = ConvertOne<std::uint64_t>(DType::kF32, kSignalling, DType::kF64, kExact);
  EXPECT_EQ(wide, 0xfff0000020000000u);
  EXPECT_EQ(ConvertOne<std::uint32_t>(DType::kF64, *wide, DType::kF32, kExact), kSignalling);
}

TEST(Widening, PowersOfTwoWithoutSignAreExact) {
  for (std::uint32_t pattern = 0; pattern < 255; ++pattern) {
    const auto wide = FromPattern<float>(DType::kF8E8M0Fnu, pattern, DType::kF32, kExact);
    ASSERT_EQ(wide, std::ldexp(1.0f, static_cast<int>(pattern) - 127));
    ASSERT_EQ(ToPattern(DType::kF32, *wide, DType::kF8E8M0Fnu, kExact), pattern);
  }
  const auto nan = FromPattern<float>(DType::kF8E8M0Fnu, 255, DType::kF32, kExact);
  EXPECT_TRUE(std::isnan(nan.value()));
  EXPECT_EQ(ToPattern(DType::kF32, *nan, DType::kF8E8M0Fnu, kExact), 255u);
}

}  // namespace
}  // namespace sealpoint::testing
