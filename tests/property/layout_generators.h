// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_PROPERTY_LAYOUT_GENERATORS_H_
#define SEALPOINT_TESTS_PROPERTY_LAYOUT_GENERATORS_H_

#include <rapidcheck.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "sealpoint/region.h"

// Small shapes, regions and tilings, and the plain lists of elements that they stand for. The
// functions named Any… draw from RapidCheck and may be called in a property only.

namespace sealpoint::test {

inline std::uint64_t AnyIn(std::uint64_t min, std::uint64_t max) {
  // At the full size from the first case on: small numbers are no simpler here.
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::uint64_t>(min, max + 1));
}

inline Shape AnyShape(std::size_t ndim_max = 4, std::uint64_t extent_max = 5) {
  Shape shape(AnyIn(0, ndim_max));
  for (std::uint64_t& extent : shape) extent = AnyIn(1, extent_max);
  return shape;
}

inline Box AnyBoxIn(const Box& outer) {
  Box box = outer;
  for (std::size_t d = 0; d < box.offset.size(); ++d) {
    const std::uint64_t skipped = AnyIn(0, outer.extent[d] - 1);
    box.offset[d] += skipped;
    box.extent[d] = AnyIn(1, outer.extent[d] - skipped);
  }
  return box;
}

inline Region AnyRegion(const Shape& shape) {
  Region region = Region::Of(AnyBoxIn(Region::Whole(shape).box));
  if (*rc::gen::arbitrary<bool>()) {
    region.run.begin = AnyIn(0, region.run.end - 1);
    region.run.end = AnyIn(region.run.begin + 1, region.run.end);
  }
  return region;
}

// The tensor's row-major element numbers of a box, in the order of the box; by walking over all
// elements of the tensor, with none of the library's arithmetic.
inline std::vector<std::uint64_t> Elements(const Shape& shape, const Box& box) {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  std::vector<std::uint64_t> elements;
  for (std::uint64_t element = 0; element < count; ++element) {
    bool inside = true;
    std::uint64_t rest = element;
    for (std::size_t d = shape.size(); d-- > 0;) {
      const std::uint64_t at = rest % shape[d];
      rest /= shape[d];
      inside = inside && at >= box.offset[d] && at < box.offset[d] + box.extent[d];
    }
    if (inside) elements.push_back(element);
  }
  return elements;
}

inline std::vector<std::uint64_t> Elements(const Shape& shape, const Region& region) {
  const std::vector<std::uint64_t> box = Elements(shape, region.box);
  return {box.begin() + static_cast<std::ptrdiff_t>(region.run.begin),
          box.begin() + static_cast<std::ptrdiff_t>(region.run.end)};
}

// Strictly ascending numbers in (0, size), each present or not.
inline std::vector<std::uint64_t> AnyCuts(std::uint64_t size) {
  std::vector<std::uint64_t> cuts;
  for (std::uint64_t cut = 1; cut < size; ++cut) {
    if (AnyIn(0, 3) == 0) cuts.push_back(cut);
  }
  return cuts;
}

// Splits a box at random places until chance stops it, then some boxes into runs: tilings that are
// no grids, too.
inline void SplitAtRandom(const Box& box, std::vector<Region>& tiling) {
  for (std::size_t d = 0; d < box.extent.size(); ++d) {
    if (box.extent[d] < 2 || AnyIn(0, 2) == 0) continue;
    const std::uint64_t cut = AnyIn(1, box.extent[d] - 1);
    Box low = box;
    Box high = box;
    low.extent[d] = cut;
    high.offset[d] += cut;
    high.extent[d] -= cut;
    SplitAtRandom(low, tiling);
    SplitAtRandom(high, tiling);
    return;
  }
  Region rest = Region::Of(box);
  if (AnyIn(0, 2) == 0) {
    for (const std::uint64_t cut : AnyCuts(rest.run.end)) {
      Region part = rest;
      part.run.end = cut;
      tiling.push_back(part);
      rest.run.begin = cut;
    }
  }
  tiling.push_back(rest);
}

template <typename T>
void ShuffleAtRandom(std::vector<T>& values) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[AnyIn(0, i - 1)]);
}

inline std::vector<Region> AnyTiling(const Shape& shape) {
  std::vector<Region> tiling;
  SplitAtRandom(Region::Whole(shape).box, tiling);
  ShuffleAtRandom(tiling);
  return tiling;
}

// The tiling with one region lost, doubled, or replaced by any other; it may still tile by chance.
inline void DisturbAtRandom(const Shape& shape, std::vector<Region>& regions) {
  const std::size_t index = AnyIn(0, regions.size() - 1);
  switch (AnyIn(0, 2)) {
    case 0:
      regions.erase(regions.begin() + static_cast<std::ptrdiff_t>(index));
      break;
    case 1:
      regions.push_back(Region(regions[index]));
      break;
    default:
      regions[index] = AnyRegion(shape);
      break;
  }
}

}  // namespace sealpoint::test

#endif  // SEALPOINT_TESTS_PROPERTY_LAYOUT_GENERATORS_H_
