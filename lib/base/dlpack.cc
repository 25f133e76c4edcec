// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "sealpoint/memory_view.h"

namespace sealpoint {
namespace {

struct Row {
  DType dtype;
  DlpackDType dlpack;
};
constexpr std::array<Row, 22> kRows = {{
    {DType::kInt8, {0, 8, 1}},         {DType::kInt16, {0, 16, 1}},
    {DType::kInt32, {0, 32, 1}},       {DType::kInt64, {0, 64, 1}},
    {DType::kUInt8, {1, 8, 1}},        {DType::kUInt16, {1, 16, 1}},
    {DType::kUInt32, {1, 32, 1}},      {DType::kUInt64, {1, 64, 1}},
    {DType::kF16, {2, 16, 1}},         {DType::kF32, {2, 32, 1}},
    {DType::kF64, {2, 64, 1}},         {DType::kBf16, {4, 16, 1}},
    {DType::kComplex32, {5, 32, 1}},   {DType::kComplex64, {5, 64, 1}},
    {DType::kComplex128, {5, 128, 1}}, {DType::kBool, {6, 8, 1}},
    {DType::kF8E4M3Fn, {10, 8, 1}},    {DType::kF8E4M3Fnuz, {11, 8, 1}},
    {DType::kF8E5M2, {12, 8, 1}},      {DType::kF8E5M2Fnuz, {13, 8, 1}},
    {DType::kF8E8M0Fnu, {14, 8, 1}},   {DType::kF4E2M1X2, {17, 4, 2}},
}};

}  // namespace

std::optional<DlpackDType> DlpackOf(DType dtype) {
  const auto* const row = std::ranges::find(kRows, dtype, &Row::dtype);
  if (row == kRows.end()) return std::nullopt;
  return row->dlpack;
}

std::optional<DType> DTypeOfDlpack(DlpackDType dtype) {
  const auto* const row = std::ranges::find(kRows, dtype, &Row::dlpack);
  if (row == kRows.end()) return std::nullopt;
  return row->dtype;
}

}  // namespace sealpoint
