// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/intervals.h"

#include <algorithm>

#include "lib/base/checked_math.h"

namespace sealpoint::internal {

std::uint64_t SizeOf(const Intervals& intervals) {
  std::uint64_t size = 0;
  for (const Interval& one : intervals) size += one.size();
  return size;
}

void Append(Intervals& intervals, Interval one) {
  if (one.size() == 0) return;
  if (!intervals.empty() && intervals.back().end == one.begin) {
    intervals.back().end = one.end;
  } else {
    intervals.push_back(one);
  }
}

Intervals SliceOf(const Intervals& intervals, Interval positions) {
  Intervals slice;
  std::uint64_t first = 0;  // local position of the interval's begin
  for (const Interval& one : intervals) {
    const std::uint64_t begin = std::max(positions.begin, first);
    const std::uint64_t end = std::min(positions.end, first + one.size());
    if (begin < end) Append(slice, {one.begin + (begin - first), one.begin + (end - first)});
    first += one.size();
  }
  return slice;
}

Interval PieceOf(std::uint64_t size, std::uint64_t count, std::uint64_t index, SplitRule rule,
                 std::uint64_t unit) {
  const std::uint64_t units = DivideRoundUp(size, unit);
  Interval piece{units, units};
  if (rule == SplitRule::kEven) {
    const std::uint64_t longer = units % count;  // pieces with one unit more
    piece.begin = units / count * index + std::min(index, longer);
    piece.end = piece.begin + units / count + (index < longer ? 1 : 0);
  } else if (const std::uint64_t most = DivideRoundUp(units, count);
             most != 0 && index < DivideRoundUp(units, most)) {
    piece.begin = index * most;
    piece.end = piece.begin + std::min(most, units - piece.begin);
  }
  return {std::min(size, piece.begin * unit), std::min(size, piece.end * unit)};
}

}  // namespace sealpoint::internal
