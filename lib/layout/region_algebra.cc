// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/region_algebra.h"

#include <algorithm>

namespace sealpoint::internal::layout {
namespace {

// Row-major coordinates of element number `element`, relative to the box.
std::vector<std::uint64_t> Coordinates(std::uint64_t element,
                                       const std::vector<std::uint64_t>& strides) {
  std::vector<std::uint64_t> coordinates;
  coordinates.reserve(strides.size());
  for (const std::uint64_t stride : strides) {
    coordinates.push_back(element / stride);
    element %= stride;
  }
  return coordinates;
}

// The elements whose coordinates before `dim` are those of `at`, whose coordinate in `dim` is in
// [begin, end), and whose later coordinates are free.
Box Slab(const Box& box, const std::vector<std::uint64_t>& at, std::size_t dim, std::uint64_t begin,
         std::uint64_t end) {
  Box slab = box;
  for (std::size_t d = 0; d < dim; ++d) {
    slab.offset[d] += at[d];
    slab.extent[d] = 1;
  }
  slab.offset[dim] += begin;
  slab.extent[dim] = end - begin;
  return slab;
}

}  // namespace

std::uint64_t BoxElementCount(const Box& box) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : box.extent) count *= extent;
  return count;
}

std::vector<std::uint64_t> RowMajorStrides(const std::vector<std::uint64_t>& extent) {
  std::vector<std::uint64_t> strides(extent.size(), 1);
  for (std::size_t d = extent.size(); d > 1; --d) strides[d - 2] = strides[d - 1] * extent[d - 1];
  return strides;
}

bool BoxContains(const Box& outer, const Box& inner) {
  for (std::size_t d = 0; d < outer.offset.size(); ++d) {
    if (inner.offset[d] < outer.offset[d]) return false;
    if (inner.offset[d] + inner.extent[d] > outer.offset[d] + outer.extent[d]) return false;
  }
  return true;
}

std::optional<Box> IntersectBoxes(const Box& a, const Box& b) {
  Box common = a;
  for (std::size_t d = 0; d < a.offset.size(); ++d) {
    const std::uint64_t begin = std::max(a.offset[d], b.offset[d]);
    const std::uint64_t end = std::min(a.offset[d] + a.extent[d], b.offset[d] + b.extent[d]);
    if (begin >= end) return std::nullopt;
    common.offset[d] = begin;
    common.extent[d] = end - begin;
  }
  return common;
}

// The run climbs from its begin to the first dimension in which begin and end differ, one slab per
// dimension, crosses whole sub-boxes there, and descends to its end. `end` may have a coordinate
// equal to the extent in dimension 0 only; the descent from there is empty. The number of boxes,
// and so of corners, decides whether an index is within its limits (spec/limits.md): a
// decomposition into fewer or more boxes changes which checkpoints readers accept.
std::vector<Box> DecomposeRun(const Region& region) {
  const Box& box = region.box;
  if (box.extent.empty() || region.run == Run{0, BoxElementCount(box)}) return {box};
  const std::vector<std::uint64_t> strides = RowMajorStrides(box.extent);
  std::vector<std::uint64_t> begin = Coordinates(region.run.begin, strides);
  const std::vector<std::uint64_t> end = Coordinates(region.run.end, strides);
  std::size_t split = 0;
  while (begin[split] == end[split]) ++split;

  std::vector<Box> boxes;
  for (std::size_t d = box.extent.size() - 1; d > split; --d) {
    if (begin[d] == 0) continue;
    // A carry from below may have brought it to the extent: then it only carries on.
    if (begin[d] < box.extent[d]) boxes.push_back(Slab(box, begin, d, begin[d], box.extent[d]));
    begin[d] = 0;
    ++begin[d - 1];
  }
  if (begin[split] < end[split]) {
    boxes.push_back(Slab(box, begin, split, begin[split], end[split]));
  }
  for (std::size_t d = split + 1; d < box.extent.size(); ++d) {
    if (end[d] != 0) boxes.push_back(Slab(box, end, d, 0, end[d]));
  }
  return boxes;
}

std::vector<Box> IntersectRegions(const Region& a, const Region& b) {
  std::vector<Box> common;
  if (!IntersectBoxes(a.box, b.box)) return common;
  const std::vector<Box> parts_of_b = DecomposeRun(b);
  for (const Box& part_of_a : DecomposeRun(a)) {
    for (const Box& part_of_b : parts_of_b) {
      if (auto box = IntersectBoxes(part_of_a, part_of_b)) common.push_back(*std::move(box));
    }
  }
  return common;
}

bool RegionsOverlap(const Region& a, const Region& b) { return !IntersectRegions(a, b).empty(); }

Region SubRun(const Region& region, std::uint64_t begin, std::uint64_t end) {
  return Region{region.box, {.begin = region.run.begin + begin, .end = region.run.begin + end}};
}

std::optional<Box> SteppedHull(Box box, const std::vector<std::uint64_t>& origin,
                               const std::vector<std::uint64_t>& steps) {
  for (std::size_t d = 0; d < steps.size(); ++d) {
    const std::uint64_t past = (box.offset[d] - origin[d]) % steps[d];
    const std::uint64_t skipped = past == 0 ? 0 : steps[d] - past;
    if (skipped >= box.extent[d]) return std::nullopt;
    box.offset[d] += skipped;
    box.extent[d] = (box.extent[d] - skipped - 1) / steps[d] * steps[d] + 1;
  }
  return box;
}

Run CoveringRun(const Box& box, const Box& part) {
  const std::vector<std::uint64_t> strides = RowMajorStrides(box.extent);
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    const std::uint64_t from = part.offset[d] - box.offset[d];
    first += from * strides[d];
    last += (from + part.extent[d] - 1) * strides[d];
  }
  return Run{.begin = first, .end = last + 1};
}

}  // namespace sealpoint::internal::layout
