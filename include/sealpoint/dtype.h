// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_DTYPE_H_
#define SEALPOINT_DTYPE_H_

#include <bit>
#include <complex>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "sealpoint/export.h"

namespace sealpoint {

// Element types. These values are frozen in the file format (spec/registries.md). Other values are
// legal on disk: their elements can be copied, because the element size is stored as well.
enum class DType : std::uint16_t {
  // No dtype: not set. Refused wherever a dtype is required, and never stored.
  kNone = 0,
  kBool = 1,
  kInt8 = 2,
  kInt16 = 3,
  kInt32 = 4,
  kInt64 = 5,
  kUInt8 = 6,
  kUInt16 = 7,
  kUInt32 = 8,
  kUInt64 = 9,
  kF16 = 10,
  kBf16 = 11,
  kF32 = 12,
  kF64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kF8E4M3Fn = 16,
  kF8E5M2 = 17,
  kF8E4M3Fnuz = 18,
  kF8E5M2Fnuz = 19,
  kF8E8M0Fnu = 20,
  // Two 4-bit values in one byte; one element is one byte, as in torch.float4_e2m1fn_x2.
  kF4E2M1X2 = 21,
  // Real and imaginary parts are f16, as in torch.complex32.
  kComplex32 = 22,
};

struct DTypeInfo {
  DType dtype{};
  std::string_view name{};     // "bf16", "f8_e4m3fn", …
  std::uint32_t size_bytes{};  // of one element
};

// All registered dtypes, ascending by id.
SEALPOINT_EXPORT std::span<const DTypeInfo> RegisteredDTypes();

// Empty if the id or the name is not registered.
SEALPOINT_EXPORT std::optional<DTypeInfo> FindDType(DType dtype);
SEALPOINT_EXPORT std::optional<DTypeInfo> FindDType(std::string_view name);

// The name, or "unknown" if the id is not registered.
SEALPOINT_EXPORT std::string_view DTypeName(DType dtype);

// The element size in bytes, or 0 if the id is not registered.
SEALPOINT_EXPORT std::uint32_t DTypeSizeBytes(DType dtype);

// True for integers that have a dtype: signed char, short, int, long, long long and their unsigned
// variants, but not character types.
template <typename T>
inline constexpr bool kIsIntegerElement =
    std::is_integral_v<T> && sizeof(T) <= 8 &&
    !(std::is_same_v<T, bool> || std::is_same_v<T, char> || std::is_same_v<T, wchar_t> ||
      std::is_same_v<T, char8_t> || std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>);

// The dtype of elements of this C++ type; kNone if it has none (such as std::byte). Programs may
// specialise it for their own types with the same representation:
//   template <>
//   inline constexpr DType sealpoint::kDTypeOf<__nv_bfloat16> = DType::kBf16;
template <typename T>
inline constexpr DType kDTypeOf = [] {
  if constexpr (std::is_same_v<T, bool>) {
    return DType::kBool;
  } else if constexpr (kIsIntegerElement<T>) {
    // Each kind has four dtypes, of 1, 2, 4 and 8 bytes, in this order.
    constexpr DType kFirst = std::is_signed_v<T> ? DType::kInt8 : DType::kUInt8;
    return static_cast<DType>(static_cast<int>(kFirst) + std::countr_zero(sizeof(T)));
  } else if constexpr (std::is_same_v<T, float>) {
    return DType::kF32;
  } else if constexpr (std::is_same_v<T, double>) {
    return DType::kF64;
  } else if constexpr (std::is_same_v<T, std::complex<float>>) {
    return DType::kComplex64;
  } else if constexpr (std::is_same_v<T, std::complex<double>>) {
    return DType::kComplex128;
  } else {
    return DType::kNone;
  }
}();

}  // namespace sealpoint

#endif  // SEALPOINT_DTYPE_H_
