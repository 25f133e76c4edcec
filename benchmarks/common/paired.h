// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_COMMON_PAIRED_H_
#define SEALPOINT_BENCHMARKS_COMMON_PAIRED_H_

#include <chrono>
#include <string>
#include <vector>

// Paired measurement: in each round every variant runs once, back to back, and only the ratios
// within a round count. On a shared machine rates drift by a factor of three from minute to minute,
// while the ratios are stable.

namespace sealpoint::bench {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Precondition: not empty.
double Median(std::vector<double> values);

// Seconds of one baseline and one candidate per round.
struct PairedSeries {
  std::string name{};
  std::vector<double> baseline_seconds{};
  std::vector<double> candidate_seconds{};

  // Rate of the candidate ÷ rate of the baseline for the same bytes, per round.
  std::vector<double> Ratios() const;
};

// "name   median ratio 0.98 (0.91 to 1.04, 11 rounds), target >= 0.95: met; 2.31 against 2.36
// GB/s". Returns whether the median reaches the target. The rates are medians, for orientation
// only.
bool PrintSeries(const PairedSeries& series, double bytes, double target);

}  // namespace sealpoint::bench

#endif  // SEALPOINT_BENCHMARKS_COMMON_PAIRED_H_
