// SPDX-License-Identifier: Apache-2.0
#include "lib/repack/average.h"

namespace sealpoint::internal::repack {
namespace {

// A complex element is two of these.
template <typename T>
void ScaleElements(double weight, std::byte* sum, std::uint64_t size_bytes) {
  const T factor = static_cast<T>(weight);
  T* const sums = reinterpret_cast<T*>(sum);
  for (std::uint64_t i = 0; i < size_bytes / sizeof(T); ++i) sums[i] = factor * sums[i];
}

template <typename T>
void AddElements(double weight, const std::byte* values, std::byte* sum, std::uint64_t size_bytes) {
  const T factor = static_cast<T>(weight);
  const T* const terms = reinterpret_cast<const T*>(values);
  T* const sums = reinterpret_cast<T*>(sum);
  for (std::uint64_t i = 0; i < size_bytes / sizeof(T); ++i) {
    const T product = factor * terms[i];
    sums[i] = sums[i] + product;
  }
}

bool IsDouble(DType accumulator) {
  return accumulator == DType::kF64 || accumulator == DType::kComplex128;
}

}  // namespace

std::optional<DType> AccumulatorOf(DType dtype, MergeOptions::Accumulate accumulate) {
  const bool is_double = accumulate == MergeOptions::Accumulate::kF64;
  switch (dtype) {
    case DType::kF8E4M3Fn:
    case DType::kF8E5M2:
    case DType::kF8E4M3Fnuz:
    case DType::kF8E5M2Fnuz:
    case DType::kF16:
    case DType::kBf16:
    case DType::kF32:
      return is_double ? DType::kF64 : DType::kF32;
    case DType::kF64:
      return DType::kF64;
    case DType::kComplex32:
    case DType::kComplex64:
      return is_double ? DType::kComplex128 : DType::kComplex64;
    case DType::kComplex128:
      return DType::kComplex128;
    default:
      return std::nullopt;
  }
}

void ScaleBy(double weight, DType accumulator, std::byte* sum, std::uint64_t size_bytes) {
  if (IsDouble(accumulator)) {
    ScaleElements<double>(weight, sum, size_bytes);
  } else {
    ScaleElements<float>(weight, sum, size_bytes);
  }
}

void AddScaled(double weight, DType accumulator, const std::byte* values, std::byte* sum,
               std::uint64_t size_bytes) {
  if (IsDouble(accumulator)) {
    AddElements<double>(weight, values, sum, size_bytes);
  } else {
    AddElements<float>(weight, values, sum, size_bytes);
  }
}

}  // namespace sealpoint::internal::repack
