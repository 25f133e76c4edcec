// SPDX-License-Identifier: Apache-2.0
#include "lib/compare/summary.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "lib/compare/values.h"

namespace sealpoint::internal::compare {
namespace {

void CountNonfinite(double value, ValueStatistics& sums) {
  if (std::isnan(value)) {
    ++sums.nan_count;
  } else {
    ++(value > 0 ? sums.positive_infinity_count : sums.negative_infinity_count);
  }
}

std::uint64_t ZerosAtEnd(const std::vector<double>& values) {
  const auto last = std::find_if(values.rbegin(), values.rend(), [](double v) { return v != 0; });
  return static_cast<std::uint64_t>(last - values.rbegin());
}

// Real and imaginary parts are values like others.
DType PartOf(DType dtype) {
  switch (dtype) {
    case DType::kComplex32:
      return DType::kF16;
    case DType::kComplex64:
      return DType::kF32;
    case DType::kComplex128:
      return DType::kF64;
    default:
      return dtype;
  }
}

ValueStatistics Decoded(DType dtype, ByteSpan bytes, Exponents& exponents) {
  ValueStatistics all;
  std::vector<double> values;
  const std::optional<double> saturation = SaturationOf(dtype);
  while (!bytes.empty()) {
    const ByteSpan some =
        bytes.first(std::min<std::uint64_t>(bytes.size(), kElementsAtOnce * DTypeSizeBytes(dtype)));
    DecodeValues(dtype, some, values);
    AddBehind(all, Summarize(values, saturation, exponents));
    bytes = bytes.subspan(some.size());
  }
  return all;
}

}  // namespace

std::optional<double> SaturationOf(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3Fn:
      return 448;
    case DType::kF8E5M2:
    case DType::kF8E5M2Fnuz:
      return 57344;
    case DType::kF8E4M3Fnuz:
      return 240;
    case DType::kF8E8M0Fnu:
      return 0x1p127;
    case DType::kF4E2M1X2:
      return 6;
    default:
      return std::nullopt;
  }
}

ValueStatistics Summarize(const std::vector<double>& values, std::optional<double> saturation,
                          Exponents& exponents) {
  ValueStatistics sums{.value_count = values.size(), .zero_tail_count = ZerosAtEnd(values)};
  double total = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) {
      CountNonfinite(value, sums);
      continue;
    }
    total += value;
    sums.squares += value * value;
    sums.min = std::min(sums.min, value);
    sums.max = std::max(sums.max, value);
    if (value == 0) {
      ++sums.zero_count;
    } else {
      ++exponents[(std::bit_cast<std::uint64_t>(value) >> 52u) & 2047u];
    }
    if (saturation && std::abs(value) == *saturation) ++sums.saturated_count;
  }
  if (sums.finite_count() == 0) return sums;
  const auto count = static_cast<double>(sums.finite_count());
  const double mean = total / count;
  // The mean is rounded: what the deviations' sum is not zero by is taken out of both.
  double deviations = 0;
  for (const double value : values) {
    const double deviation = value - mean;
    if (!std::isfinite(value)) continue;
    deviations += deviation;
    sums.squared_deviations += deviation * deviation;
  }
  sums.mean = mean + deviations / count;
  sums.squared_deviations -= deviations * deviations / count;
  return sums;
}

void AddBehind(ValueStatistics& all, const ValueStatistics& next) {
  const std::uint64_t tail = all.zero_tail_count;
  all.Add(next);
  const bool is_all_zero = next.zero_tail_count == next.value_count;
  all.zero_tail_count = next.zero_tail_count + (is_all_zero ? tail : 0);
}

ValueStatistics StatisticsOf(DType dtype, ByteSpan bytes) {
  dtype = PartOf(dtype);
  const std::uint64_t size = DTypeSizeBytes(dtype);
  Exponents exponents{};
  ValueStatistics all;
  if (size <= 2 && bytes.size() / size >= kCountedMin) {
    all = CountByBits(dtype, bytes, exponents);
  } else if (dtype == DType::kF32 || dtype == DType::kF64) {
    const ByteSpan blocks = bytes.first(bytes.size() - bytes.size() % (kBlockValues * size));
    all = dtype == DType::kF32 ? SumFloats(blocks, exponents) : SumDoubles(blocks, exponents);
    AddBehind(all, Decoded(dtype, bytes.subspan(blocks.size()), exponents));
  } else {
    all = Decoded(dtype, bytes, exponents);
  }
  for (std::size_t i = 0; i < exponents.size(); ++i) {
    if (exponents.at(i) > 0) all.exponents[static_cast<int>(i) - kExponentBias] = exponents.at(i);
  }
  return all;
}

}  // namespace sealpoint::internal::compare
