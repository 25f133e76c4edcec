// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_AVERAGE_H_
#define SEALPOINT_LIB_REPACK_AVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sealpoint/dtype.h"
#include "sealpoint/repack.h"

namespace sealpoint::internal::repack {

// Dtype for summing elements of `dtype`; empty if they are not averaged.
std::optional<DType> AccumulatorOf(DType dtype, MergeOptions::Accumulate accumulate);

// `sum` = weight * sum, and `sum` += weight * values. `size_bytes` of elements of a dtype that
// AccumulatorOf returned, aligned for them; each product and each sum is rounded to it.
void ScaleBy(double weight, DType accumulator, std::byte* sum, std::uint64_t size_bytes);
void AddScaled(double weight, DType accumulator, const std::byte* values, std::byte* sum,
               std::uint64_t size_bytes);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_AVERAGE_H_
