// SPDX-License-Identifier: Apache-2.0
#include "readers/load/coverage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::load {
namespace {

// Appends `box` without `hole`, which is in it, as disjoint boxes: per dimension a slab before
// and one after the hole.
void AppendWithout(Box box, const Box& hole, std::vector<Box>& out) {
  for (std::size_t d = 0; d < box.extent.size(); ++d) {
    const std::uint64_t hole_end = hole.offset[d] + hole.extent[d];
    const std::uint64_t box_end = box.offset[d] + box.extent[d];
    if (hole.offset[d] > box.offset[d]) {
      Box before = box;
      before.extent[d] = hole.offset[d] - box.offset[d];
      out.push_back(std::move(before));
    }
    if (hole_end < box_end) {
      Box behind = box;
      behind.offset[d] = hole_end;
      behind.extent[d] = box_end - hole_end;
      out.push_back(std::move(behind));
    }
    box.offset[d] = hole.offset[d];
    box.extent[d] = hole.extent[d];
  }
}

}  // namespace

Uncovered FindUncovered(const Shape& shape, const std::vector<Region>& regions) {
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return {};
  }
  std::vector<Box> left = {Region::Whole(shape).box};
  for (const Region& region : regions) {
    for (const Box& box : layout::DecomposeRun(region)) {
      std::vector<Box> rest;
      for (Box& piece : left) {
        const std::optional<Box> hole = layout::IntersectBoxes(piece, box);
        if (hole) {
          AppendWithout(std::move(piece), *hole, rest);
        } else {
          rest.push_back(std::move(piece));
        }
      }
      left = std::move(rest);
    }
  }
  Uncovered uncovered;
  for (const Box& box : left) uncovered.count += layout::BoxElementCount(box);
  if (!left.empty()) uncovered.example = *std::min_element(left.begin(), left.end());
  return uncovered;
}

}  // namespace sealpoint::internal::load
