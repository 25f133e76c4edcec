// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_STATISTICS_H_
#define SEALPOINT_STATISTICS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/compare.h"
#include "sealpoint/dtype.h"
#include "sealpoint/export.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Statistics of the values of one or more tensors. A complex number and an element of f4_e2m1x2
// count as two values; a bool is 0 or 1. Sums and extremes use finite values, in double precision.
struct SEALPOINT_EXPORT ValueStatistics {
  std::uint64_t value_count = 0;
  std::uint64_t nan_count = 0;
  std::uint64_t positive_infinity_count = 0;
  std::uint64_t negative_infinity_count = 0;
  std::uint64_t zero_count = 0;  // of both signs
  // Values with the greatest magnitude of a dtype of one byte or less; they may have been clipped.
  std::uint64_t saturated_count = 0;
  // Zeros after the last nonzero value in row-major order; summed over several tensors. A long tail
  // may be state that was never written.
  std::uint64_t zero_tail_count = 0;
  double min = std::numeric_limits<double>::infinity();  // valid if there is a finite value
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double squared_deviations = 0;  // sum of squared deviations from the mean
  double squares = 0;             // sum of squares
  // Number of finite nonzero values per exponent, floor(log2(magnitude)). Subnormal values of f64
  // count as -1023.
  std::map<int, std::uint64_t> exponents{};

  std::uint64_t nonfinite_count() const {
    return nan_count + positive_infinity_count + negative_infinity_count;
  }
  std::uint64_t finite_count() const { return value_count - nonfinite_count(); }
  double standard_deviation() const;  // of the population; 0 without values
  double l2() const;                  // the norm
  // Adds the values of another tensor.
  void Add(const ValueStatistics& more);
  friend bool operator==(const ValueStatistics&, const ValueStatistics&) = default;
};

struct TensorStatistics {
  std::string name{};
  DType dtype = DType::kNone;
  Shape shape{};
  std::optional<ValueStatistics> values{};  // absent if the dtype is not registered
  friend bool operator==(const TensorStatistics&, const TensorStatistics&) = default;
};

// Computes statistics of the selected tensors, sorted by name. Reads and verifies all of them; the
// result does not depend on the number of threads. Single process. Errors: those of
// ComputeContentDigest.
SEALPOINT_EXPORT Result<std::vector<TensorStatistics>> ComputeStatistics(
    const Checkpoint& checkpoint, const ContentOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_STATISTICS_H_
