// SPDX-License-Identifier: Apache-2.0
//
// Blocks of floats are summed in eight lanes, so that each sum has the same parts in the same order
// whatever the machine's registers are.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "lib/compare/summary.h"
#include "lib/compare/values.h"

namespace sealpoint::internal::compare {
namespace {

// Registers of 16 bytes are everywhere; the compiler makes instructions of operations on them.
constexpr std::size_t kRegisterBytes = 16;
constexpr std::size_t kLanes = 8;

template <typename T, std::size_t kCount>
struct VectorOf {
  typedef T Type __attribute__((vector_size(kCount * sizeof(T))));
};
template <typename T, std::size_t kCount = kRegisterBytes / sizeof(T)>
using Vector = typename VectorOf<T, kCount>::Type;
// The lanes, in as many registers as they take.
template <typename T>
using Lanes = std::array<Vector<T>, kLanes * sizeof(T) / kRegisterBytes>;

template <typename T>
struct Float;
template <>
struct Float<float> {
  using Bits = std::int32_t;
  static constexpr unsigned kMantissaBits = 23;
  static constexpr int kBias = 127;
  static constexpr DType kDType = DType::kF32;
};
template <>
struct Float<double> {
  using Bits = std::int64_t;
  static constexpr unsigned kMantissaBits = 52;
  static constexpr int kBias = 1023;
  static constexpr DType kDType = DType::kF64;
};

template <typename T>
using BitsOf = typename Float<T>::Bits;
template <typename T>
constexpr std::size_t kExponents = std::size_t{1} << (8 * sizeof(T) - 1 - Float<T>::kMantissaBits);

// What a pass over a block finds; sums of lanes.
template <typename T>
struct BlockSums {
  double total = 0;
  double squares = 0;
  T min = 0;
  T max = 0;
  std::uint64_t zeros = 0;
  bool has_nonfinite = false;
};

// From a mean, which is rounded: what their sum is not zero by is taken out of both.
struct Deviations {
  double sum = 0;
  double squares = 0;
};

// Calls `visit` with the value of each lane, in order.
template <typename T, typename Visit>
void ForEachLane(const Lanes<T>& lanes, const Visit& visit) {
  for (const Vector<T>& some : lanes) {
    for (std::size_t i = 0; i < kRegisterBytes / sizeof(T); ++i) visit(some[i]);
  }
}

double SumOfLanes(const Lanes<double>& lanes) {
  double sum = 0;
  ForEachLane<double>(lanes, [&](double lane) { sum += lane; });
  return sum;
}

// As many values from `at` on as a register has doubles.
template <typename T>
Vector<double> LoadWide(const std::byte* at) {
  constexpr std::size_t kDoubles = kRegisterBytes / sizeof(double);
  Vector<T, kDoubles> values;
  std::memcpy(&values, at, sizeof(values));
  return __builtin_convertvector(values, Vector<double>);
}

template <typename T>
BlockSums<T> SumBlock(const std::byte* block) {
  Lanes<double> total = {};
  Lanes<double> squares = {};
  Lanes<BitsOf<T>> zeros = {};
  Lanes<BitsOf<T>> nonfinite = {};
  Lanes<T> min;
  std::memcpy(&min, block, sizeof(min));
  Lanes<T> max = min;
  for (std::size_t i = 0; i < kBlockValues; i += kLanes) {
    const std::byte* const at = block + i * sizeof(T);
    for (std::size_t k = 0; k < min.size(); ++k) {
      Vector<T> values;
      std::memcpy(&values, at + k * kRegisterBytes, sizeof(values));
      nonfinite[k] |= (values * T{0}) != 0;  // infinities and NaN make NaN
      zeros[k] -= values == 0;               // a comparison that holds is -1
      min[k] = values < min[k] ? values : min[k];
      max[k] = values > max[k] ? values : max[k];
    }
    for (std::size_t k = 0; k < total.size(); ++k) {
      const Vector<double> wide = LoadWide<T>(at + k * kRegisterBytes / sizeof(double) * sizeof(T));
      total[k] += wide;
      squares[k] += wide * wide;
    }
  }
  BlockSums<T> sums{.total = SumOfLanes(total),
                    .squares = SumOfLanes(squares),
                    .min = min[0][0],
                    .max = max[0][0]};
  ForEachLane<T>(min, [&](T lane) { sums.min = std::min(sums.min, lane); });
  ForEachLane<T>(max, [&](T lane) { sums.max = std::max(sums.max, lane); });
  ForEachLane<BitsOf<T>>(zeros,
                         [&](BitsOf<T> lane) { sums.zeros += static_cast<std::uint64_t>(lane); });
  ForEachLane<BitsOf<T>>(
      nonfinite, [&](BitsOf<T> lane) { sums.has_nonfinite = sums.has_nonfinite || lane != 0; });
  return sums;
}

template <typename T>
Deviations SumDeviations(const std::byte* block, double mean) {
  Lanes<double> sums = {};
  Lanes<double> squares = {};
  for (std::size_t i = 0; i < kBlockValues; i += kLanes) {
    for (std::size_t k = 0; k < sums.size(); ++k) {
      const std::size_t at = i + k * kRegisterBytes / sizeof(double);
      const Vector<double> deviations = LoadWide<T>(block + at * sizeof(T)) - mean;
      sums[k] += deviations;
      squares[k] += deviations * deviations;
    }
  }
  return {.sum = SumOfLanes(sums), .squares = SumOfLanes(squares)};
}

// How often each exponent is there, as it is stored. Neighbours count in different tables, as in
// CountByBits.
template <typename T>
class StoredExponents {
 public:
  void Count(const std::byte* block) {
    using Unsigned = std::make_unsigned_t<BitsOf<T>>;
    for (std::size_t i = 0; i < kBlockValues; i += kTables) {
      std::array<Unsigned, kTables> bits{};
      std::memcpy(bits.data(), block + i * sizeof(T), sizeof(bits));
      for (std::size_t table = 0; table < kTables; ++table) {
        const auto exponent = (bits[table] << 1u) >> (Float<T>::kMantissaBits + 1u);
        ++counts_[table * kExponents<T> + exponent];
      }
    }
  }
  std::uint64_t CountOf(std::size_t exponent) const {
    std::uint64_t count = 0;
    for (std::size_t table = 0; table < kTables; ++table) {
      count += counts_[table * kExponents<T> + exponent];
    }
    return count;
  }

 private:
  static constexpr std::size_t kTables = 4;
  std::vector<std::uint32_t> counts_ = std::vector<std::uint32_t>(kTables * kExponents<T>);
};

template <typename T>
T ValueAt(const std::byte* block, std::size_t i) {
  T value;
  std::memcpy(&value, block + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
std::uint64_t ZerosAtEnd(const std::byte* block) {
  std::uint64_t zeros = 0;
  while (zeros < kBlockValues && ValueAt<T>(block, kBlockValues - 1 - zeros) == 0) ++zeros;
  return zeros;
}

// What is stored with the exponent zero and is no zero has an exponent of its own as a double.
template <typename T>
void CountSubnormals(const std::byte* block, Exponents& exponents) {
  for (std::size_t i = 0; i < kBlockValues; ++i) {
    const auto value = static_cast<double>(ValueAt<T>(block, i));
    constexpr auto kLeastNormal = static_cast<double>(std::numeric_limits<T>::min());
    const bool is_subnormal = value != 0 && std::abs(value) < kLeastNormal;
    if (is_subnormal) ++exponents[(std::bit_cast<std::uint64_t>(value) >> 52u) & 2047u];
  }
}

template <typename T>
ValueStatistics Sum(ByteSpan bytes, Exponents& exponents) {
  constexpr std::size_t kBlockBytes = kBlockValues * sizeof(T);
  constexpr double kValues = kBlockValues;
  ValueStatistics all;
  StoredExponents<T> stored;
  std::uint64_t stored_zeros = 0;
  std::vector<double> values;
  for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    const std::byte* const block = bytes.data() + at;
    const auto sums = SumBlock<T>(block);
    if (sums.has_nonfinite) {
      DecodeValues(Float<T>::kDType, bytes.subspan(at, kBlockBytes), values);
      AddBehind(all, Summarize(values, std::nullopt, exponents));
      continue;
    }
    const double mean = sums.total / kValues;
    const Deviations deviations = SumDeviations<T>(block, mean);
    stored.Count(block);
    if (stored.CountOf(0) > stored_zeros + sums.zeros) CountSubnormals<T>(block, exponents);
    stored_zeros = stored.CountOf(0);
    AddBehind(all,
              {.value_count = kBlockValues,
               .zero_count = sums.zeros,
               .zero_tail_count = ZerosAtEnd<T>(block),
               .min = static_cast<double>(sums.min),
               .max = static_cast<double>(sums.max),
               .mean = mean + deviations.sum / kValues,
               .squared_deviations = deviations.squares - deviations.sum * deviations.sum / kValues,
               .squares = sums.squares});
  }
  for (std::size_t i = 1; i < kExponents<T>; ++i) {
    exponents.at(i + kExponentBias - Float<T>::kBias) += stored.CountOf(i);
  }
  return all;
}

}  // namespace

ValueStatistics SumFloats(ByteSpan bytes, Exponents& exponents) {
  return Sum<float>(bytes, exponents);
}

ValueStatistics SumDoubles(ByteSpan bytes, Exponents& exponents) {
  return Sum<double>(bytes, exponents);
}

}  // namespace sealpoint::internal::compare
