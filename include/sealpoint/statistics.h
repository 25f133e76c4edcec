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

// What the values of a tensor, or of several, are. A complex number is two values, and so is an
// element of f4_e2m1x2; a bool is 0 or 1. Sums and extremes are those of finite values, in double
// precision.
struct SEALPOINT_EXPORT ValueStatistics {
  std::uint64_t value_count = 0;
  std::uint64_t nan_count = 0;
  std::uint64_t positive_infinity_count = 0;
  std::uint64_t negative_infinity_count = 0;
  std::uint64_t zero_count = 0;  // of both signs
  // With the greatest magnitude of a dtype of one byte or less: values may have been cut off there.
  std::uint64_t saturated_count = 0;
  // Zeros behind the last value that is another one, in row-major order; of several tensors the
  // sum. A long tail may be state that was never written.
  std::uint64_t zero_tail_count = 0;
  double min = std::numeric_limits<double>::infinity();  // if there is any finite value
  double max = -std::numeric_limits<double>::infinity();
  double mean = 0;
  double squared_deviations = 0;  // from the mean, summed
  double squares = 0;             // summed
  // How many finite values have this exponent, floor(log2(magnitude)); without zeros. Values of f64
  // below its normal numbers count as -1023.
  std::map<int, std::uint64_t> exponents{};

  std::uint64_t nonfinite_count() const {
    return nan_count + positive_infinity_count + negative_infinity_count;
  }
  std::uint64_t finite_count() const { return value_count - nonfinite_count(); }
  double standard_deviation() const;  // of the population; 0 without values
  double l2() const;                  // the norm
  // Adds what another tensor has.
  void Add(const ValueStatistics& more);
  friend bool operator==(const ValueStatistics&, const ValueStatistics&) = default;
};

struct TensorStatistics {
  std::string name{};
  DType dtype = DType::kNone;
  Shape shape{};
  std::optional<ValueStatistics> values{};  // absent if the dtype is not registered: not read
  friend bool operator==(const TensorStatistics&, const TensorStatistics&) = default;
};

// Statistics of the tensors that the options name, by name. Reads and verifies all of them; the
// result does not depend on the number of threads. Single process. Errors: as of
// ComputeContentDigest.
SEALPOINT_EXPORT Result<std::vector<TensorStatistics>> ComputeStatistics(
    const Checkpoint& checkpoint, const ContentOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_STATISTICS_H_
