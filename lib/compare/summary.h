// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_SUMMARY_H_
#define SEALPOINT_LIB_COMPARE_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/statistics.h"

// Statistics of the values of some elements, in three ways: dtypes of at most two bytes are counted
// by their bits, floats are summed in blocks by vectors, all else is decoded value by value.

namespace sealpoint::internal::compare {

// How many finite values but zeros have an exponent, by the biased exponent of a double.
using Exponents = std::array<std::uint64_t, 2048>;
inline constexpr int kExponentBias = 1023;

// The statistics of all values of these elements. Precondition: HasValues, whole elements, at most
// 2^32 - 1 of them.
ValueStatistics StatisticsOf(DType dtype, ByteSpan bytes);

// Adds the values behind those of `all`, in row-major order.
void AddBehind(ValueStatistics& all, const ValueStatistics& next);

// The greatest finite magnitude, of dtypes in which values are often cut off.
std::optional<double> SaturationOf(DType dtype);

// Those of few values; exponents go to `exponents` alone.
ValueStatistics Summarize(const std::vector<double>& values, std::optional<double> saturation,
                          Exponents& exponents);

// Elements of one byte, or of two, which are as many values. Of fewer than this of them counting by
// bits takes longer than decoding: all bits there may be are gone through in the end.
inline constexpr std::uint64_t kCountedMin = std::uint64_t{1} << 16;
ValueStatistics CountByBits(DType dtype, ByteSpan bytes, Exponents& exponents);

// Whole blocks of so many floats. Blocks with a value that is not finite are left to `Summarize`.
inline constexpr std::size_t kBlockValues = 4096;
ValueStatistics SumFloats(ByteSpan bytes, Exponents& exponents);
ValueStatistics SumDoubles(ByteSpan bytes, Exponents& exponents);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_SUMMARY_H_
