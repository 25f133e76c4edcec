// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/dtype.h"

#include <algorithm>
#include <array>

namespace sealpoint {
namespace {

constexpr std::array<DTypeInfo, 22> kRegistry = {{
    {DType::kBool, "bool", 1},
    {DType::kInt8, "i8", 1},
    {DType::kInt16, "i16", 2},
    {DType::kInt32, "i32", 4},
    {DType::kInt64, "i64", 8},
    {DType::kUInt8, "u8", 1},
    {DType::kUInt16, "u16", 2},
    {DType::kUInt32, "u32", 4},
    {DType::kUInt64, "u64", 8},
    {DType::kF16, "f16", 2},
    {DType::kBf16, "bf16", 2},
    {DType::kF32, "f32", 4},
    {DType::kF64, "f64", 8},
    {DType::kComplex64, "c64", 8},
    {DType::kComplex128, "c128", 16},
    {DType::kF8E4M3Fn, "f8_e4m3fn", 1},
    {DType::kF8E5M2, "f8_e5m2", 1},
    {DType::kF8E4M3Fnuz, "f8_e4m3fnuz", 1},
    {DType::kF8E5M2Fnuz, "f8_e5m2fnuz", 1},
    {DType::kF8E8M0Fnu, "f8_e8m0fnu", 1},
    {DType::kF4E2M1X2, "f4_e2m1x2", 1},
    {DType::kComplex32, "c32", 4},
}};

}  // namespace

std::span<const DTypeInfo> RegisteredDTypes() { return kRegistry; }

std::optional<DTypeInfo> FindDType(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  if (index == 0 || index > kRegistry.size()) return std::nullopt;
  return kRegistry[index - 1];
}

std::optional<DTypeInfo> FindDType(std::string_view name) {
  const auto* const found =
      std::find_if(kRegistry.begin(), kRegistry.end(),
                   [name](const DTypeInfo& info) { return info.name == name; });
  if (found == kRegistry.end()) return std::nullopt;
  return *found;
}

std::string_view DTypeName(DType dtype) {
  const auto info = FindDType(dtype);
  return info ? info->name : "unknown";
}

std::uint32_t DTypeSizeBytes(DType dtype) {
  const auto info = FindDType(dtype);
  return info ? info->size_bytes : 0;
}

}  // namespace sealpoint
