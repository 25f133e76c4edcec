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

// Element types. These values are frozen in the file format (spec/registries.md). A file may
// contain other values; elements of unknown types can still be copied, because the file also stores
// the element size.
enum class DType : std::uint16_t {
  // No dtype. Not allowed where a dtype is required, and never stored in a file.
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
  // One element is one byte that holds two 4-bit values, as in torch.float4_e2m1fn_x2.
  kF4E2M1X2 = 21,
  // The real part and the imaginary part are f16, as in torch.complex32.
  kComplex32 = 22,
};

struct DTypeInfo {
  DType dtype{};
  std::string_view name{};     // "bf16", "f8_e4m3fn", …
  std::uint32_t size_bytes{};  // size of one element
};

// Returns all registered dtypes in ascending order of their ids.
SEALPOINT_EXPORT std::span<const DTypeInfo> RegisteredDTypes();

// Returns the dtype with this id or name, or an empty optional if it is not registered.
SEALPOINT_EXPORT std::optional<DTypeInfo> FindDType(DType dtype);
SEALPOINT_EXPORT std::optional<DTypeInfo> FindDType(std::string_view name);

// Returns the name of a dtype, or "unknown" if the id is not registered.
SEALPOINT_EXPORT std::string_view DTypeName(DType dtype);

// Returns the element size in bytes, or 0 if the id is not registered.
SEALPOINT_EXPORT std::uint32_t DTypeSizeBytes(DType dtype);

// True for integer types that have a dtype: signed char, short, int, long, long long and the
// unsigned variants of these types. False for bool and character types.
template <typename T>
inline constexpr bool kIsIntegerElement =
    std::is_integral_v<T> && sizeof(T) <= 8 &&
    !(std::is_same_v<T, bool> || std::is_same_v<T, char> || std::is_same_v<T, wchar_t> ||
      std::is_same_v<T, char8_t> || std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>);

// The dtype of a C++ element type. kNone if the type has no dtype, as is the case for std::byte.
// Programs may specialize kDTypeOf for their own types with the same representation as a dtype:
//   template <>
//   inline constexpr DType sealpoint::kDTypeOf<__nv_bfloat16> = DType::kBf16;
template <typename T>
inline constexpr DType kDTypeOf = [] {
  if constexpr (std::is_same_v<T, bool>) {
    return DType::kBool;
  } else if constexpr (kIsIntegerElement<T>) {
    // Signed and unsigned integers have four dtypes each, of 1, 2, 4 and 8 bytes, in this order.
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

// How a conversion treats values that the destination's dtype cannot represent.
enum class Rounding : std::uint8_t {
  // The conversion fails with an error that names the element. If a conversion succeeds, it is
  // reversible: converting the result back gives the original values, and a NaN remains a NaN.
  kExact,
  // Rounds to the nearest value of a floating-point dtype, with ties to even. As in torch, values
  // that are out of range become infinity, or NaN if the dtype has no infinity. The parts of
  // complex numbers are rounded in the same way. Conversions to integers and to f8_e8m0fnu never
  // round: they must be exact.
  kNearestEven,
};

// A dtype conversion that a reader requests. Integer, floating-point and complex dtypes can be
// converted; docs/reference/conversion.md has the rules for each pair of dtypes. bool, f4_e2m1x2
// and unregistered dtypes cannot be converted.
struct Conversion {
  DType to{};
  Rounding rounding = Rounding::kExact;
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

// Reversible transforms of a chunk. The values are frozen in the file format (spec/registries.md).
enum class Codec : std::uint16_t {
  kNone = 0,
  kZstd = 1,
  // Groups the bytes of elements by significance (all first bytes, then all second bytes, …) and
  // then applies zstd. Level 1 is a preset for floating-point data: it is faster than the other
  // levels and produces smaller output.
  kByteSplitZstd = 2,
  // The elements that differ from those of the checkpoint's base, with their positions. Chosen for
  // each chunk by a save that has a base (SaveOptions::base), and never by a caller.
  kChanges = 4,
};

// Returns "none", "zstd", "bytesplit+zstd" or "changes", or "unknown" for any other value.
SEALPOINT_EXPORT std::string_view CodecName(Codec codec);

}  // namespace sealpoint

#endif  // SEALPOINT_DTYPE_H_
