// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <complex>
#include <vector>

#include "tests/unit/convert/convert_one.h"

namespace sealpoint::testing {
namespace {

using internal::convert::ElementConverter;

bool Converts(DType from, DType to) { return ElementConverter::Make(from, {.to = to}).has_value(); }

const std::byte* BytesOf(const void* memory) { return static_cast<const std::byte*>(memory); }
std::byte* BytesOf(void* memory) { return static_cast<std::byte*>(memory); }

TEST(ElementConverter, KnowsWhichDTypesConvert) {
  for (const DTypeInfo& from : RegisteredDTypes()) {
    for (const DTypeInfo& to : RegisteredDTypes()) {
      const auto is_none = [](DType d) { return d == DType::kBool || d == DType::kF4E2M1X2; };
      const auto is_complex = [](DType d) {
        return d == DType::kComplex32 || d == DType::kComplex64 || d == DType::kComplex128;
      };
      const bool expected = !is_none(from.dtype) && !is_none(to.dtype) &&
                            is_complex(from.dtype) == is_complex(to.dtype);
      EXPECT_EQ(Converts(from.dtype, to.dtype), expected) << from.name << " to " << to.name;
    }
  }
  EXPECT_FALSE(Converts(static_cast<DType>(999), DType::kF32));
  EXPECT_FALSE(Converts(DType::kF32, static_cast<DType>(999)));
}

TEST(ElementConverter, StopsBeforeTheFirstElementWithoutCounterpart) {
  const auto converter = ElementConverter::Make(DType::kInt32, {.to = DType::kInt8}).value();
  for (const std::size_t bad : {0u, 1u, 255u, 256u, 257u, 999u}) {
    std::vector<std::int32_t> source(1000, -5);
    std::vector<std::int8_t> target(1000, 9);
    source[bad] = 128;
    EXPECT_EQ(converter.Convert(BytesOf(source.data()), 4, BytesOf(target.data()), 1, 1000), bad);
    EXPECT_EQ(std::count(target.begin(), target.end(), -5), static_cast<std::ptrdiff_t>(bad));
    EXPECT_EQ(target[bad], 9);
  }
}

TEST(ElementConverter, TakesAnyStridesAndAlignment) {
  const auto converter = ElementConverter::Make(DType::kUInt16, {.to = DType::kInt64}).value();
  std::vector<std::byte> source(3 * 7 + 1);
  for (std::size_t i = 0; i < 3; ++i) source[1 + 7 * i] = static_cast<std::byte>(i + 1);
  std::vector<std::byte> target(3 * 9 + 1, std::byte{0xee});
  // Backwards, with a byte between two.
  EXPECT_EQ(converter.Convert(source.data() + 1, 7, target.data() + 1 + 2 * 9, -9, 3), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, target.data() + 1 + 9 * i, sizeof(value));
    EXPECT_EQ(value, static_cast<std::int64_t>(3 - i));
    EXPECT_EQ(target[9 * i], std::byte{0xee});
  }
}

TEST(ElementConverter, ComplexNumbersPartByPart) {
  using Single = std::complex<float>;
  using Double = std::complex<double>;
  const std::vector<Single> source = {{1.5f, -2.0f}, {0.0f, 0.25f}};
  std::vector<Double> wide(2);
  const auto widen = ElementConverter::Make(DType::kComplex64, {.to = DType::kComplex128}).value();
  EXPECT_EQ(widen.Convert(BytesOf(source.data()), 8, BytesOf(wide.data()), 16, 2), 2u);
  EXPECT_THAT(wide, ::testing::ElementsAre(Double(1.5, -2.0), Double(0.0, 0.25)));
  std::vector<Single> back(2);
  const auto narrow = ElementConverter::Make(DType::kComplex128, {.to = DType::kComplex64}).value();
  EXPECT_EQ(narrow.Convert(BytesOf(wide.data()), 16, BytesOf(back.data()), 8, 2), 2u);
  EXPECT_EQ(back, source);
  std::vector<std::uint16_t> halves(4);
  const auto halve = ElementConverter::Make(DType::kComplex64, {.to = DType::kComplex32}).value();
  EXPECT_EQ(halve.Convert(BytesOf(source.data()), 8, BytesOf(halves.data()), 4, 2), 2u);
  EXPECT_THAT(halves, ::testing::ElementsAre(0x3e00, 0xc000, 0, 0x3400));
  std::vector<Double> from_halves(2);
  const auto double_up =
      ElementConverter::Make(DType::kComplex32, {.to = DType::kComplex128}).value();
  EXPECT_EQ(double_up.Convert(BytesOf(halves.data()), 4, BytesOf(from_halves.data()), 16, 2), 2u);
  EXPECT_EQ(from_halves, wide);
  wide[0] = {1.0, 0.1};
  EXPECT_EQ(narrow.Convert(BytesOf(wide.data()), 16, BytesOf(back.data()), 8, 2), 0u);
  wide = {{1.0, 1.0}, {0.1, 1.0}};
  EXPECT_EQ(narrow.Convert(BytesOf(wide.data()), 16, BytesOf(back.data()), 8, 2), 1u);
}

TEST(ElementConverter, DescribesAnElement) {
  const auto describe = [](DType from, auto value, DType to) {
    return ElementConverter::Make(from, {.to = to}).value().Describe(BytesOf(&value));
  };
  EXPECT_EQ(describe(DType::kInt64, std::int64_t{-9007199254740993}, DType::kF64),
            "the i64 value -9007199254740993 has no f64 counterpart");
  EXPECT_EQ(describe(DType::kF32, 1e10f, DType::kF16),
            "the f32 value 10000000000 has no f16 counterpart");
  EXPECT_EQ(describe(DType::kF64, -0.0, DType::kInt8), "the f64 value -0 has no i8 counterpart");
  EXPECT_EQ(describe(DType::kF64, -std::numeric_limits<double>::infinity(), DType::kInt8),
            "the f64 value -infinity has no i8 counterpart");
  EXPECT_EQ(describe(DType::kF64, std::nan(""), DType::kInt8),
            "the f64 value NaN has no i8 counterpart");
  EXPECT_EQ(describe(DType::kComplex128, std::complex<double>(1, 0.5), DType::kComplex64),
            "the c128 value 1, 0.5 has no c64 counterpart");
}

}  // namespace
}  // namespace sealpoint::testing
