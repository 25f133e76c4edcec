// SPDX-License-Identifier: Apache-2.0
#include "lib/compare/numeric.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lib/compare/values.h"

namespace sealpoint::internal::compare {
namespace {

std::uint64_t CountChanged(std::uint32_t element_size, ByteSpan first, ByteSpan second) {
  if (std::memcmp(first.data(), second.data(), first.size()) == 0) return 0;
  std::uint64_t count = 0;
  for (std::size_t at = 0; at < first.size(); at += element_size) {
    count += std::memcmp(first.data() + at, second.data() + at, element_size) != 0 ? 1u : 0u;
  }
  return count;
}

// The sums of few values, so that those of many are sums of sums.
DifferenceSums SumValues(const std::vector<double>& first, const std::vector<double>& second) {
  DifferenceSums sums;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double a = first[i];
    const double b = second[i];
    if (std::isfinite(a) && std::isfinite(b)) {
      const double difference = b - a;
      sums.max_abs = std::max(sums.max_abs, std::abs(difference));
      sums.squares += difference * difference;
      sums.first_squares += a * a;
      sums.second_squares += b * b;
      sums.products += a * b;
      continue;
    }
    if (std::isnan(b) && !std::isnan(a)) ++sums.new_nan_count;
    if (std::isinf(b) && !std::isinf(a)) ++sums.new_infinity_count;
  }
  return sums;
}

}  // namespace

void DifferenceSums::Add(const DifferenceSums& more) {
  read_count += more.read_count;
  changed_count += more.changed_count;
  new_nan_count += more.new_nan_count;
  new_infinity_count += more.new_infinity_count;
  max_abs = std::max(max_abs, more.max_abs);
  squares += more.squares;
  first_squares += more.first_squares;
  second_squares += more.second_squares;
  products += more.products;
}

NumericDifference DifferenceSums::Result() const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double no_norm = squares == 0 ? 0 : kInfinity;
  return {.read_count = read_count,
          .changed_count = changed_count,
          .max_abs = max_abs,
          .l2 = std::sqrt(squares),
          .relative_l2 = first_squares == 0 ? no_norm : std::sqrt(squares / first_squares),
          .cosine = products / (std::sqrt(first_squares) * std::sqrt(second_squares)),
          .new_nan_count = new_nan_count,
          .new_infinity_count = new_infinity_count};
}

DifferenceSums SumDifferences(DType dtype, std::uint32_t element_size, ByteSpan first,
                              ByteSpan second, bool numeric) {
  DifferenceSums sums;
  std::vector<double> a;
  std::vector<double> b;
  while (!first.empty()) {
    const std::uint64_t size =
        std::min<std::uint64_t>(first.size(), kElementsAtOnce * element_size);
    DifferenceSums some;
    if (numeric) {
      DecodeValues(dtype, first.first(size), a);
      DecodeValues(dtype, second.first(size), b);
      some = SumValues(a, b);
    }
    some.read_count = size / element_size;
    some.changed_count = CountChanged(element_size, first.first(size), second.first(size));
    sums.Add(some);
    first = first.subspan(size);
    second = second.subspan(size);
  }
  return sums;
}

}  // namespace sealpoint::internal::compare
