// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/convert/element_converter.h"
#include "tests/support/state/float_reference.h"

// Rounding against a search in the list of all values of the format.

namespace sealpoint::testing {
namespace {

using internal::convert::ElementConverter;

// Doubles around the values of the format more often than far from them.
double AnyDouble(const SmallFloat& format, const std::vector<double>& values) {
  const auto bits = *rc::gen::arbitrary<std::uint64_t>();
  if (*rc::gen::inRange(0, 3) == 0) return std::bit_cast<double>(bits);
  const double near = values[bits % values.size()];
  const double factor = 1.0 + static_cast<double>(bits >> 40) / 0x1p24;  // in [1, 2)
  const double sign = *rc::gen::arbitrary<bool>() ? -1.0 : 1.0;
  return sign *
         (*rc::gen::arbitrary<bool>() ? near * factor : std::ldexp(factor, -format.bias - 2));
}

RC_GTEST_PROP(ConvertProperty, AnyDoublesRoundToTheNearestValue, ()) {
  const auto& formats = SmallFloats();
  const SmallFloat& format = formats[*rc::gen::inRange<std::size_t>(0, formats.size())];
  const std::vector<double> values = format.Values();
  const std::size_t size = DTypeSizeBytes(format.dtype);
  std::vector<double> source(*rc::gen::inRange<std::size_t>(1, 600));
  for (double& value : source) value = AnyDouble(format, values);
  std::vector<std::byte> target(source.size() * size);
  const auto converter =
      ElementConverter::Make(DType::kF64, {format.dtype, Rounding::kNearestEven}).value();
  RC_ASSERT(converter.Convert(reinterpret_cast<const std::byte*>(source.data()), 8, target.data(),
                              static_cast<std::int64_t>(size), source.size()) == source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    std::uint32_t pattern = 0;
    std::memcpy(&pattern, target.data() + i * size, size);
    const auto expected = NearestPattern(format, values, source[i]);
    const bool is_right = expected ? pattern == *expected : format.IsNan(pattern);
    RC_ASSERT(is_right);
  }
}

}  // namespace
}  // namespace sealpoint::testing
