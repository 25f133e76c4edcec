// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_VALUES_H_
#define SEALPOINT_LIB_COMPARE_VALUES_H_

#include <cstdint>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"

namespace sealpoint::internal::compare {

// Elements whose values are best decoded at once: they stay in the cache.
inline constexpr std::uint64_t kElementsAtOnce = 4096;

// Whether the elements are numbers: those of all registered dtypes are.
bool HasValues(DType dtype);

// The values of these elements, each exact but for integers beyond 2^53: two of a complex number
// and of f4_e2m1x2 (its low half first), 0 or 1 of a bool. Precondition: HasValues, whole elements.
void DecodeValues(DType dtype, ByteSpan elements, std::vector<double>& values);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_VALUES_H_
