// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/common/paired.h"

#include <algorithm>
#include <cstdio>

namespace sealpoint::bench {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> PairedSeries::Ratios() const {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < baseline_seconds.size(); ++i) {
    ratios.push_back(baseline_seconds[i] / candidate_seconds[i]);
  }
  return ratios;
}

bool PrintSeries(const PairedSeries& series, double bytes, double target) {
  const std::vector<double> ratios = series.Ratios();
  const auto [least, greatest] = std::minmax_element(ratios.begin(), ratios.end());
  const double median = Median(ratios);
  const bool is_met = median >= target;
  std::printf(
      "%-34s median ratio %.3f (%.3f to %.3f, %zu rounds), target >= %.2f: %s; %.2f against %.2f "
      "GB/s\n",
      series.name.c_str(), median, *least, *greatest, ratios.size(), target,
      is_met ? "met" : "missed", bytes / Median(series.candidate_seconds) / 1e9,
      bytes / Median(series.baseline_seconds) / 1e9);
  std::fflush(stdout);
  return is_met;
}

}  // namespace sealpoint::bench
