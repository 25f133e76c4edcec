// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/intervals.h"

#include <algorithm>

#include "lib/base/checked_math.h"

namespace sealpoint::internal::layout {

std::uint64_t SizeOf(const Intervals& intervals) {
  std::uint64_t size = 0;
  for (const Interval& interval : intervals) size += interval.size();
  return size;
}

void Append(Intervals& intervals, Interval next) {
  if (next.size() == 0) return;
  if (!intervals.empty() && intervals.back().end == next.begin) {
    intervals.back().end = next.end;
  } else {
    intervals.push_back(next);
  }
}

Intervals SliceOf(const Intervals& intervals, Interval positions) {
  Intervals slice;
  std::uint64_t first = 0;  // local position of the interval's begin
  for (const Interval& interval : intervals) {
    const std::uint64_t begin = std::max(positions.begin, first);
    const std::uint64_t end = std::min(positions.end, first + interval.size());
    if (begin < end) {
      Append(slice, {interval.begin + (begin - first), interval.begin + (end - first)});
    }
    first += interval.size();
  }
  return slice;
}

// kEven is the rule of torch.tensor_split, kCeilChunk that of torch.chunk and FSDP: full parts
// first, then a short one, then empty ones. A part must be where the framework put it, so that the
// two rules are not interchangeable even if the sizes are equal. The test of `index` against the
// number of parts that are not empty also keeps index * full_size from overflowing.
Interval SplitPart(std::uint64_t size, std::uint64_t count, std::uint64_t index, SplitRule rule,
                   std::uint64_t unit) {
  const std::uint64_t units = DivideRoundUp(size, unit);
  Interval part{units, units};
  if (rule == SplitRule::kEven) {
    const std::uint64_t longer = units % count;  // the number of parts with one unit more
    part.begin = units / count * index + std::min(index, longer);
    part.end = part.begin + units / count + (index < longer ? 1 : 0);
  } else if (const std::uint64_t full_size = DivideRoundUp(units, count);
             full_size != 0 && index < DivideRoundUp(units, full_size)) {
    part.begin = index * full_size;
    part.end = part.begin + std::min(full_size, units - part.begin);
  }
  return {std::min(size, part.begin * unit), std::min(size, part.end * unit)};
}

}  // namespace sealpoint::internal::layout
