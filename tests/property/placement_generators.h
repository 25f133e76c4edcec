// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_PROPERTY_PLACEMENT_GENERATORS_H_
#define SEALPOINT_TESTS_PROPERTY_PLACEMENT_GENERATORS_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sealpoint/placement.h"
#include "tests/property/layout_generators.h"

// Meshes and split rules that fit a shape. To be called in a property only.

namespace sealpoint::test {

// Lengths that add up.
inline std::vector<std::uint64_t> AnySections(std::uint64_t size) {
  std::vector<std::uint64_t> sections;
  for (std::uint64_t rest = size; rest > 0; rest -= sections.back()) {
    sections.push_back(AnyIn(1, rest));
  }
  return sections;
}

// A rule for the axis that keeps `size` positions of the dimension in mind: what the largest piece
// has left.
inline PlacementRule AnyCut(const std::string& axis, std::uint64_t dim, bool first_cut,
                            std::uint64_t extent) {
  const auto d = static_cast<int>(dim);
  const auto rule = AnyIn(0, 1) == 0 ? SplitRule::kCeilChunk : SplitRule::kEven;
  switch (AnyIn(0, 3)) {
    case 0:
      return StridedShard{.dim = d, .axis = axis, .split_factor = AnyIn(1, 4)};
    case 1:
      if (first_cut) {
        return ShardSections{d, axis, AnySections(extent), rule};
      }
      [[fallthrough]];
    default: {
      const std::uint64_t unit = first_cut && extent % 2 == 0 ? AnyIn(1, 2) : 1;
      return Shard{.dim = d, .axis = axis, .rule = rule, .unit = unit};
    }
  }
}

inline Mesh AnyMesh(std::uint64_t ndim_max = 3, std::uint64_t extent_max = 4) {
  MeshAxes axes(AnyIn(0, ndim_max));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    axes[i] = {std::string(1, static_cast<char>('a' + i)),
               static_cast<std::uint32_t>(AnyIn(1, extent_max))};
  }
  return Mesh::Create(axes).value();
}

inline Shape AnyShapeWithEmpties() {
  Shape shape(AnyIn(0, 3));
  for (std::uint64_t& extent : shape) extent = AnyIn(0, 9);
  return shape;
}

// Rules that fit: every axis is named, every cut is possible.
inline Placement AnyPlacement(const Mesh& mesh, const Shape& shape) {
  Placement placement;
  const bool will_be_flat = AnyIn(0, 1) == 0;
  // Behind a flat cut only dimension 0 may be in pieces.
  const std::uint64_t cut_dims =
      will_be_flat ? std::min<std::size_t>(1, shape.size()) : shape.size();
  std::vector<bool> is_cut(shape.size());
  Shape sizes = shape;
  if (cut_dims > 0 && AnyIn(0, 2) == 0) {
    const std::uint64_t dim = AnyIn(0, cut_dims - 1);
    sizes[dim] += AnyIn(0, 5);
    placement.push_back(Pad{.dim = static_cast<int>(dim), .size = sizes[dim]});
  }
  ShardFlat flat{.axes = {}, .unit = AnyIn(1, 3)};
  Placement last;
  for (const auto& [axis, size] : mesh.axes()) {
    const std::uint64_t kind = AnyIn(0, 4);
    if (kind == 0) {
      last.push_back(Replicate{axis});
    } else if (kind == 1 && will_be_flat) {
      flat.axes.push_back(axis);
    } else if (cut_dims > 0) {
      const std::uint64_t dim = AnyIn(0, cut_dims - 1);
      placement.push_back(AnyCut(axis, dim, !is_cut[dim], sizes[dim]));
      is_cut[dim] = true;
    } else {
      last.push_back(Replicate{axis});
    }
  }
  if (!flat.axes.empty()) placement.push_back(flat);
  placement.insert(placement.end(), last.begin(), last.end());
  return placement;
}

}  // namespace sealpoint::test

#endif  // SEALPOINT_TESTS_PROPERTY_PLACEMENT_GENERATORS_H_
