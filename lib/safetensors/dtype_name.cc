// SPDX-License-Identifier: Apache-2.0
#include "lib/safetensors/dtype_name.h"

#include <algorithm>
#include <array>

namespace sealpoint::internal::safetensors {
namespace {

struct NamedDType {
  std::string_view name;
  DType dtype;
};

constexpr std::array kNames = {NamedDType{"BOOL", DType::kBool},
                               NamedDType{"I8", DType::kInt8},
                               NamedDType{"I16", DType::kInt16},
                               NamedDType{"I32", DType::kInt32},
                               NamedDType{"I64", DType::kInt64},
                               NamedDType{"U8", DType::kUInt8},
                               NamedDType{"U16", DType::kUInt16},
                               NamedDType{"U32", DType::kUInt32},
                               NamedDType{"U64", DType::kUInt64},
                               NamedDType{"F16", DType::kF16},
                               NamedDType{"BF16", DType::kBf16},
                               NamedDType{"F32", DType::kF32},
                               NamedDType{"F64", DType::kF64},
                               NamedDType{"C64", DType::kComplex64},
                               NamedDType{"F8_E4M3", DType::kF8E4M3Fn},
                               NamedDType{"F8_E5M2", DType::kF8E5M2},
                               NamedDType{"F8_E4M3FNUZ", DType::kF8E4M3Fnuz},
                               NamedDType{"F8_E5M2FNUZ", DType::kF8E5M2Fnuz},
                               NamedDType{"F8_E8M0", DType::kF8E8M0Fnu},
                               NamedDType{"F4", DType::kF4E2M1X2}};

}  // namespace

DType DTypeOfSafetensors(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name, &NamedDType::name);
  return found == kNames.end() ? DType::kNone : found->dtype;
}

bool ShapeOfSafetensors(DType dtype, Shape& shape) {
  if (dtype != DType::kF4E2M1X2) return true;
  if (shape.empty() || shape.back() % 2 != 0) return false;
  shape.back() /= 2;
  return true;
}

}  // namespace sealpoint::internal::safetensors
