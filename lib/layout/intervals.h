// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_INTERVALS_H_
#define SEALPOINT_LIB_LAYOUT_INTERVALS_H_

#include <cstdint>
#include <vector>

#include "sealpoint/placement.h"

namespace sealpoint::internal::layout {

// A half-open range of positions of one dimension.
struct Interval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// The global positions of one dimension that a rank holds, in local order: position i of the local
// tensor is the i-th position of these intervals. None is empty. Global positions may descend from
// one interval to the next, but are never repeated.
using Intervals = std::vector<Interval>;

std::uint64_t SizeOf(const Intervals& intervals);

// Local positions [begin, end) of them. Precondition: end <= SizeOf(intervals).
Intervals SliceOf(const Intervals& intervals, Interval positions);

// Appends an interval, joined with the last one if they touch.
void Append(Intervals& intervals, Interval next);

// Part `index` of [0, size), which the rule cuts at multiples of `unit` into `count` parts. It may
// be empty, and the last unit may be short. Preconditions: index < count, unit > 0, and size
// rounded up to units fits 64 bits.
Interval SplitPart(std::uint64_t size, std::uint64_t count, std::uint64_t index, SplitRule rule,
                   std::uint64_t unit = 1);

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_INTERVALS_H_
