// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_VALUES_H_
#define SEALPOINT_LIB_COMPARE_VALUES_H_

#include <cstdint>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"

namespace sealpoint::internal::compare {

// Number of elements to decode together, so that their values stay in the cache.
inline constexpr std::uint64_t kElementsAtOnce = 4096;

// True if the elements are numbers, as for all registered dtypes.
bool HasValues(DType dtype);

// The values of these elements, exact except for integers beyond 2^53. A complex number and
// f4_e2m1x2 have two values (low half first); a bool is 0 or 1. Precondition: HasValues, whole
// elements.
void DecodeValues(DType dtype, ByteSpan elements, std::vector<double>& values);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_VALUES_H_
