// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_SUMMARY_H_
#define SEALPOINT_LIB_COMPARE_SUMMARY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/content.h"
#include "sealpoint/dtype.h"

// Statistics of values, in three ways: dtypes of at most two bytes are counted by their bits,
// floats are summed in blocks by vector instructions, everything else is decoded value by value.

namespace sealpoint::internal::compare {

// How many finite values but zeros have an exponent, by the biased exponent of a double.
using Exponents = std::array<std::uint64_t, 2048>;
inline constexpr int kExponentBias = 1023;

// The statistics of all values of these elements. Precondition: HasValues, whole elements, at most
// 2^32 - 1 of them.
ValueStatistics StatisticsOf(DType dtype, ByteSpan bytes);

// Adds values that follow the values of `all` in row-major order.
void AddBehind(ValueStatistics& all, const ValueStatistics& next);

// The greatest finite magnitude, of dtypes in which values are often cut off.
std::optional<double> SaturationOf(DType dtype);

// For small numbers of values; exponents are added only to `exponents`.
ValueStatistics Summarize(const std::vector<double>& values, std::optional<double> saturation,
                          Exponents& exponents);

// Minimum number of elements of one or two bytes for counting by bits. With fewer elements decoding
// is faster, because counting finally iterates over all possible bit patterns.
inline constexpr std::uint64_t kCountedMin = std::uint64_t{1} << 16;
ValueStatistics CountByBits(DType dtype, ByteSpan bytes, Exponents& exponents);

// Size of whole blocks of floats. Blocks with a non-finite value are left to `Summarize`.
inline constexpr std::size_t kBlockValues = 4096;
ValueStatistics SumFloats(ByteSpan bytes, Exponents& exponents);
ValueStatistics SumDoubles(ByteSpan bytes, Exponents& exponents);

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_SUMMARY_H_
