// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_NUMERIC_H_
#define SEALPOINT_LIB_COMPARE_NUMERIC_H_

#include <cstdint>

#include "sealpoint/bytes.h"
#include "sealpoint/content.h"
#include "sealpoint/dtype.h"

namespace sealpoint::internal::compare {

// Sums over elements of two tensors, which can be added up.
struct DifferenceSums {
  std::uint64_t read_count = 0;
  std::uint64_t changed_count = 0;
  std::uint64_t new_nan_count = 0;
  std::uint64_t new_infinity_count = 0;
  double max_abs = 0;
  double squares = 0;  // of the differences
  double first_squares = 0;
  double second_squares = 0;
  double products = 0;

  void Add(const DifferenceSums& more);
  NumericDifference Result() const;
};

// How many elements of these bytes differ, and with `numeric` by how much.
// Precondition: equal sizes, whole elements; HasValues(dtype) with `numeric`.
DifferenceSums SumDifferences(DType dtype, std::uint32_t element_size, ByteSpan first,
                              ByteSpan second, bool numeric);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_NUMERIC_H_
