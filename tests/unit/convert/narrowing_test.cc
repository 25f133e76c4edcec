// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/state/float_reference.h"
#include "tests/unit/convert/convert_one.h"

namespace sealpoint::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void ExpectAsDefined(const SmallFloat& format, const std::vector<double>& values, double x) {
  const auto rounded = ToPattern(DType::kF64, x, format.dtype, kNearest);
  const auto expected = NearestPattern(format, values, x);
  ASSERT_TRUE(rounded.has_value());
  if (expected) {
    ASSERT_EQ(*rounded, *expected) << DTypeName(format.dtype) << " of " << x;
  } else {
    ASSERT_TRUE(format.IsNan(*rounded)) << DTypeName(format.dtype) << " of " << x;
  }
  const bool is_there = expected && std::bit_cast<std::uint64_t>(format.ValueOf(*expected)) ==
                                        std::bit_cast<std::uint64_t>(x);
  const auto exact = ToPattern(DType::kF64, x, format.dtype, kExact);
  ASSERT_EQ(exact.has_value(), is_there) << DTypeName(format.dtype) << " of " << x;
  ASSERT_EQ(exact.value_or(*rounded), *rounded);
}

// Each value, the numbers next to it, the middle between two, and the numbers next to that.
TEST(Narrowing, IsTheNearestValueAroundEveryValue) {
  for (const SmallFloat& format : SmallFloats()) {
    std::vector<double> values = format.Values();
    const double beyond = values.back() + (values.back() - values[values.size() - 2]);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double next = i + 1 < values.size() ? values[i + 1] : beyond;
      for (const double at : {values[i], (values[i] + next) / 2}) {
        for (const double x : {at, std::nextafter(at, kInfinity), std::nextafter(at, -kInfinity)}) {
          ExpectAsDefined(format, values, x);
          ExpectAsDefined(format, values, -x);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Narrowing, FarAwayNumbers) {
  for (const SmallFloat& format : SmallFloats()) {
    const std::vector<double> values = format.Values();
    for (const double x :
         {kInfinity, 1e300, 1e40, 1e-40, 1e-300, 0.0, std::numeric_limits<double>::denorm_min()}) {
      ExpectAsDefined(format, values, x);
      ExpectAsDefined(format, values, -x);
    }
  }
}

TEST(Narrowing, EveryPowerOfTwo) {
  for (const SmallFloat& format : SmallFloats()) {
    const std::vector<double> values = format.Values();
    for (int exponent = -1074; exponent < 1024; ++exponent) {
      // The second has 53 bits.
      for (const double x : {1.0, 2.0 - 0x1p-52}) {
        ExpectAsDefined(format, values, std::ldexp(x, exponent));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Narrowing, OverflowGoesWhereTorchSendsIt) {
  EXPECT_EQ(ToPattern(DType::kF32, 65519.0f, DType::kF16, kNearest), 0x7bffu);
  EXPECT_EQ(ToPattern(DType::kF32, 65520.0f, DType::kF16, kNearest), 0x7c00u);
  EXPECT_EQ(ToPattern(DType::kF32, -1e6f, DType::kF8E5M2, kNearest), 0xfcu);
  EXPECT_EQ(ToPattern(DType::kF32, 464.0f, DType::kF8E4M3Fn, kNearest), 0x7eu);
  EXPECT_EQ(ToPattern(DType::kF32, 465.0f, DType::kF8E4M3Fn, kNearest), 0x7fu);
  EXPECT_EQ(ToPattern(DType::kF32, -465.0f, DType::kF8E4M3Fn, kNearest), 0xffu);
  EXPECT_EQ(ToPattern(DType::kF32, 1e6f, DType::kF8E4M3Fnuz, kNearest), 0x80u);
  EXPECT_EQ(ToPattern(DType::kF32, -1e6f, DType::kF8E5M2Fnuz, kNearest), 0x80u);
}

TEST(Narrowing, NanStaysNanAndKeepsWhatHasRoom) {
  constexpr std::uint32_t kPayloadAtTheEnd = 0xff800001;
  constexpr std::uint32_t kPayloadInFront = 0x7fa00000;
  for (const Rounding rounding : {kExact, kNearest}) {
    EXPECT_EQ(ToPattern(DType::kF32, kPayloadAtTheEnd, DType::kBf16, rounding), 0xffc0u);
    EXPECT_EQ(ToPattern(DType::kF32, kPayloadInFront, DType::kBf16, rounding), 0x7fa0u);
    EXPECT_EQ(ToPattern(DType::kF32, kPayloadInFront, DType::kF16, rounding), 0x7d00u);
    EXPECT_EQ(ToPattern(DType::kF32, kPayloadAtTheEnd, DType::kF8E4M3Fn, rounding), 0xffu);
    EXPECT_EQ(ToPattern(DType::kF32, kPayloadAtTheEnd, DType::kF8E4M3Fnuz, rounding), 0x80u);
  }
}

TEST(Narrowing, DoubleToSingleIsThatOfTheProcessor) {
  // An odd step meets every exponent of a single, its neighbours and many mantissas.
  constexpr std::uint64_t kBegin = 0x3600000000000000;
  constexpr std::uint64_t kEnd = 0x4800000000000000;
  for (std::uint64_t bits = kBegin; bits < kEnd; bits += 0x000007ffffff1357) {
    const double value = std::bit_cast<double>(bits);
    const auto single = ConvertOne<float>(DType::kF64, value, DType::kF32, kNearest);
    ASSERT_EQ(std::bit_cast<std::uint32_t>(single.value()),
              std::bit_cast<std::uint32_t>(static_cast<float>(value)));
    const auto exact = ConvertOne<float>(DType::kF64, value, DType::kF32, kExact);
    ASSERT_EQ(exact.has_value(), static_cast<double>(static_cast<float>(value)) == value);
  }
}

TEST(Narrowing, DoesNotDependOnTheRoundingModeOfTheProgram) {
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  const auto single = ConvertOne<float>(DType::kF64, 1.0 + 0x1p-30, DType::kF32, kNearest);
  const auto half = ToPattern(DType::kF32, 0x1p-25f, DType::kF16, kNearest);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(single, 1.0f);
  EXPECT_EQ(half, 0u);  // half of the least value: a tie
}

TEST(Narrowing, PowersOfTwoWithoutSignAreNeverRounded) {
  for (const Rounding rounding : {kExact, kNearest}) {
    EXPECT_EQ(ToPattern(DType::kF64, 0x1p-127, DType::kF8E8M0Fnu, rounding), 0u);
    EXPECT_EQ(ToPattern(DType::kF64, 0x1p127, DType::kF8E8M0Fnu, rounding), 254u);
    for (const double x : {0.0, -1.0, 3.0, 0x1p-128, 0x1p128, kInfinity}) {
      EXPECT_EQ(ToPattern(DType::kF64, x, DType::kF8E8M0Fnu, rounding), std::nullopt) << x;
    }
  }
}

}  // namespace
}  // namespace sealpoint::testing
