// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_UNIT_CONVERT_CONVERT_ONE_H_
#define SEALPOINT_TESTS_UNIT_CONVERT_CONVERT_ONE_H_

#include <cstdint>
#include <cstring>
#include <optional>

#include "lib/convert/element_converter.h"

namespace sealpoint::testing {

inline constexpr Rounding kExact = Rounding::kExact;
inline constexpr Rounding kNearest = Rounding::kNearestEven;

// One element from one dtype to another; nothing if it has no counterpart. To and From are the
// C++ types of the same size. Precondition: the dtypes convert.
template <typename To, typename From>
std::optional<To> ConvertOne(DType from, From value, DType to, Rounding rounding) {
  const auto converter = internal::convert::ElementConverter::Make(from, {to, rounding});
  To converted{};
  std::byte source[sizeof(From)];
  std::byte target[sizeof(To)];
  std::memcpy(source, &value, sizeof(value));
  if (converter.value().Convert(source, 0, target, 0, 1) != 1) return std::nullopt;
  std::memcpy(&converted, target, sizeof(converted));
  return converted;
}

// The pattern of a small float in its C++ type.
template <typename From>
std::optional<std::uint32_t> ToPattern(DType from, From value, DType to, Rounding rounding) {
  if (DTypeSizeBytes(to) == 1) return ConvertOne<std::uint8_t>(from, value, to, rounding);
  return ConvertOne<std::uint16_t>(from, value, to, rounding);
}
template <typename To>
std::optional<To> FromPattern(DType from, std::uint32_t pattern, DType to, Rounding rounding) {
  if (DTypeSizeBytes(from) == 1) {
    return ConvertOne<To>(from, static_cast<std::uint8_t>(pattern), to, rounding);
  }
  return ConvertOne<To>(from, static_cast<std::uint16_t>(pattern), to, rounding);
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_UNIT_CONVERT_CONVERT_ONE_H_
