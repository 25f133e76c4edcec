// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_REGION_ALGEBRA_H_
#define SEALPOINT_LIB_LAYOUT_REGION_ALGEBRA_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sealpoint/region.h"

// Pure index mathematics on boxes and runs. Everything is in elements; row-major throughout.
// Preconditions of all functions: regions that passed CheckRegion for one shape, so no overflow.

namespace sealpoint::internal::layout {

// Elements of a box; 1 for 0-d.
std::uint64_t BoxElementCount(const Box& box);

// Row-major strides of the box's own extents, in elements; the last is 1; empty for 0-d.
std::vector<std::uint64_t> RowMajorStrides(const std::vector<std::uint64_t>& extent);

bool BoxContains(const Box& outer, const Box& inner);

// Empty if they share no element.
std::optional<Box> IntersectBoxes(const Box& a, const Box& b);

// The elements of a region as disjoint boxes in tensor coordinates, ascending in the region's
// order: at most 2*ndim - 1 of them (one for a full run, 1 for 0-d and 1-d).
std::vector<Box> DecomposeRun(const Region& region);

// The elements that both regions hold, as disjoint boxes in tensor coordinates.
std::vector<Box> IntersectRegions(const Region& a, const Region& b);

// Whether they share an element.
bool RegionsOverlap(const Region& a, const Region& b);

// The part of `region` that its elements [begin, end) make, counted from region.run.begin.
Region SubRun(const Region& region, std::uint64_t begin, std::uint64_t end);

// The smallest box with all elements of `box` at multiples of steps[d] from `origin` in each
// dimension d; empty if there are none. Preconditions: no step is 0; `box` begins at or behind
// `origin`, and is not empty.
std::optional<Box> SteppedHull(Box box, const std::vector<std::uint64_t>& origin,
                               const std::vector<std::uint64_t>& steps);

// Smallest run of `box` (its own row-major numbering) that covers the box `part`.
// Precondition: BoxContains(box, part), part not empty.
Run CoveringRun(const Box& box, const Box& part);

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_REGION_ALGEBRA_H_
