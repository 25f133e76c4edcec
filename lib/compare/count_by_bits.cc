// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "lib/compare/summary.h"
#include "lib/compare/values.h"

namespace sealpoint::internal::compare {
namespace {

// A sum that keeps what rounding loses: Neumaier, "Rundungsfehleranalyse einiger Verfahren zur
// Summation endlicher Summen", 1974.
class Sum {
 public:
  void Add(double value) {
    const double sum = sum_ + value;
    lost_ += std::abs(sum_) >= std::abs(value) ? (sum_ - sum) + value : (value - sum) + sum_;
    sum_ = sum;
  }
  double value() const { return sum_ + lost_; }

 private:
  double sum_ = 0;
  double lost_ = 0;
};

// How often each pattern of bits is there. Neighbours count in different tables: an increment of
// what was just incremented would wait for the store before it.
template <typename Bits>
std::vector<std::uint32_t> Count(ByteSpan bytes) {
  constexpr std::size_t kPatterns = std::size_t{1} << (8 * sizeof(Bits));
  constexpr std::size_t kTables = 4;
  std::vector<std::uint32_t> counts(kTables * kPatterns);
  const std::size_t count = bytes.size() / sizeof(Bits);
  std::size_t i = 0;
  for (; i + kTables <= count; i += kTables) {
    std::array<Bits, kTables> bits{};
    std::memcpy(bits.data(), bytes.data() + i * sizeof(Bits), sizeof(bits));
    for (std::size_t table = 0; table < kTables; ++table) {
      ++counts[table * kPatterns + bits[table]];
    }
  }
  for (; i < count; ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    ++counts[bits];
  }
  for (std::size_t table = 1; table < kTables; ++table) {
    for (std::size_t k = 0; k < kPatterns; ++k) counts[k] += counts[table * kPatterns + k];
  }
  counts.resize(kPatterns);
  return counts;
}

// The values of each pattern, one after the other, all patterns in order.
template <typename Bits>
std::vector<double> ValuesOfPatterns(DType dtype) {
  Bytes bytes(sizeof(Bits) << (8 * sizeof(Bits)));
  for (std::size_t i = 0; i < bytes.size() / sizeof(Bits); ++i) {
    const auto bits = static_cast<Bits>(i);
    std::memcpy(bytes.data() + i * sizeof(Bits), &bits, sizeof(Bits));
  }
  std::vector<double> values;
  DecodeValues(dtype, bytes, values);
  return values;
}

template <typename Bits>
std::uint64_t ZerosAtEnd(ByteSpan bytes, const std::vector<double>& values) {
  const std::size_t per_pattern = values.size() >> (8 * sizeof(Bits));
  std::uint64_t zeros = 0;
  for (std::size_t i = bytes.size() / sizeof(Bits); i-- > 0;) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    for (std::size_t k = per_pattern; k-- > 0; ++zeros) {
      if (values[bits * per_pattern + k] != 0) return zeros;
    }
  }
  return zeros;
}

void CountNonfinite(double value, std::uint64_t count, ValueStatistics& sums) {
  if (std::isnan(value)) {
    sums.nan_count += count;
  } else {
    (value > 0 ? sums.positive_infinity_count : sums.negative_infinity_count) += count;
  }
}

// Calls `visit` with each value that is there, and how often it is.
template <typename Visit>
void ForEachValue(const std::vector<std::uint32_t>& counts, const std::vector<double>& values,
                  const Visit& visit) {
  const std::size_t per_pattern = values.size() / counts.size();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    for (std::size_t k = 0; k < per_pattern; ++k) visit(values[i * per_pattern + k], counts[i]);
  }
}

ValueStatistics SumCounts(const std::vector<std::uint32_t>& counts,
                          const std::vector<double>& values, std::optional<double> saturation,
                          Exponents& exponents) {
  ValueStatistics sums;
  Sum total;
  Sum squares;
  ForEachValue(counts, values, [&](double value, std::uint64_t count) {
    sums.value_count += count;
    if (!std::isfinite(value)) return CountNonfinite(value, count, sums);
    const double weighted = value * static_cast<double>(count);
    total.Add(weighted);
    squares.Add(value * weighted);
    sums.min = std::min(sums.min, value);
    sums.max = std::max(sums.max, value);
    if (value == 0) {
      sums.zero_count += count;
    } else {
      exponents[(std::bit_cast<std::uint64_t>(value) >> 52u) & 2047u] += count;
    }
    if (saturation && std::abs(value) == *saturation) sums.saturated_count += count;
  });
  sums.squares = squares.value();
  if (sums.finite_count() == 0) return sums;
  sums.mean = total.value() / static_cast<double>(sums.finite_count());
  Sum deviations;
  ForEachValue(counts, values, [&](double value, std::uint64_t count) {
    const double deviation = value - sums.mean;
    if (std::isfinite(value)) deviations.Add(deviation * deviation * static_cast<double>(count));
  });
  sums.squared_deviations = deviations.value();
  return sums;
}

template <typename Bits>
ValueStatistics CountBits(DType dtype, ByteSpan bytes, Exponents& exponents) {
  const std::vector<double> values = ValuesOfPatterns<Bits>(dtype);
  ValueStatistics sums = SumCounts(Count<Bits>(bytes), values, SaturationOf(dtype), exponents);
  sums.zero_tail_count = ZerosAtEnd<Bits>(bytes, values);
  return sums;
}

}  // namespace

ValueStatistics CountByBits(DType dtype, ByteSpan bytes, Exponents& exponents) {
  return DTypeSizeBytes(dtype) == 1 ? CountBits<std::uint8_t>(dtype, bytes, exponents)
                                    : CountBits<std::uint16_t>(dtype, bytes, exponents);
}

}  // namespace sealpoint::internal::compare
