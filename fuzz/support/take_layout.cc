// SPDX-License-Identifier: Apache-2.0
#include "fuzz/support/take_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sealpoint::fuzz {
namespace {

constexpr std::size_t kNdimMost = 5;
constexpr std::size_t kRegionsMax = 64;

// The box cut at one place of one dimension; false if that has only one element.
bool CutBox(InputReader& input, const Box& box, Box& low, Box& high) {
  if (box.extent.empty()) return false;
  const std::size_t d = input.TakeBelow(box.extent.size());
  if (box.extent[d] < 2) return false;
  low = box;
  high = box;
  low.extent[d] = input.TakeIn(1, box.extent[d] - 1);
  high.offset[d] += low.extent[d];
  high.extent[d] -= low.extent[d];
  return true;
}

// All boxes cut at the same places of one dimension, which makes or keeps a grid.
void CutAll(InputReader& input, const Shape& shape, std::vector<Box>& boxes) {
  if (shape.empty()) return;
  const std::size_t d = input.TakeBelow(shape.size());
  const std::uint64_t cut = input.TakeBelow(shape[d]);
  const std::size_t count = boxes.size();
  for (std::size_t i = 0; i < count && boxes.size() < kRegionsMax; ++i) {
    Box& box = boxes[i];
    if (cut <= box.offset[d] || cut >= box.offset[d] + box.extent[d]) continue;
    Box high = box;
    high.offset[d] = cut;
    high.extent[d] = box.offset[d] + box.extent[d] - cut;
    box.extent[d] = cut - box.offset[d];
    boxes.push_back(std::move(high));
  }
}

void CutIntoRuns(InputReader& input, const Box& box, std::vector<Region>& regions) {
  Region rest = Region::Of(box);
  std::uint64_t cuts = input.Take8() % 16;
  for (cuts = cuts < 12 ? 0 : cuts - 11; cuts > 0 && rest.element_count() > 1; --cuts) {
    Region part = rest;
    part.run.end = input.TakeIn(part.run.begin + 1, rest.run.end - 1);
    rest.run.begin = part.run.end;
    regions.push_back(std::move(part));
  }
  regions.push_back(std::move(rest));
}

}  // namespace

Shape TakeShape(InputReader& input, std::uint64_t count_max) {
  Shape shape;
  std::uint64_t room = count_max;
  for (std::uint64_t ndim = input.TakeBelow(kNdimMost + 1); ndim > 0; --ndim) {
    shape.push_back(input.TakeIn(1, std::min<std::uint64_t>(room, ndim == 1 ? room : 12)));
    room /= shape.back();
  }
  return shape;
}

Box TakeBox(InputReader& input, const Shape& shape) {
  Box box;
  for (const std::uint64_t extent : shape) {
    box.offset.push_back(input.TakeBelow(extent));
    box.extent.push_back(input.TakeIn(1, extent - box.offset.back()));
  }
  return box;
}

Region TakeRegion(InputReader& input, const Shape& shape) {
  Region region = Region::Of(TakeBox(input, shape));
  if (input.TakeBool()) {
    region.run.begin = input.TakeBelow(region.run.end);
    region.run.end = input.TakeIn(region.run.begin + 1, region.run.end);
  }
  return region;
}

std::vector<Region> TakeTiling(InputReader& input, const Shape& shape) {
  std::vector<Box> boxes = {Region::Whole(shape).box};
  for (std::uint64_t cuts = input.TakeBelow(5); cuts > 0; --cuts) CutAll(input, shape, boxes);
  for (std::uint64_t cuts = input.TakeBelow(4); cuts > 0; --cuts) {
    const std::size_t i = input.TakeBelow(boxes.size());
    Box low;
    Box high;
    if (!CutBox(input, boxes[i], low, high)) continue;
    boxes[i] = std::move(low);
    boxes.push_back(std::move(high));
  }
  std::vector<Region> regions;
  for (const Box& box : boxes) CutIntoRuns(input, box, regions);
  return regions;
}

MemoryLayout TakeLayout(InputReader& input, const Region& region, std::uint32_t element_size,
                        bool for_destination) {
  const std::vector<std::uint64_t>& extent = region.box.extent;
  const bool may_stride = !for_destination || region == Region::Of(region.box);
  if (!may_stride || input.TakeBool()) {
    return {.strides = {}, .origin = 0, .size = region.element_count() * element_size};
  }
  MemoryLayout layout{.strides = std::vector<std::int64_t>(extent.size())};
  std::vector<std::size_t> order(extent.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t d = order.size(); d > 1; --d) {
    std::swap(order[d - 1], order[input.TakeBelow(d)]);
  }
  layout.size = element_size;
  for (const std::size_t d : order) {
    const std::uint64_t stride = layout.size + input.TakeBelow(4);
    const std::uint64_t span = stride * (extent[d] - 1);
    layout.strides[d] = static_cast<std::int64_t>(stride);
    if (input.TakeBool()) {
      layout.strides[d] = -layout.strides[d];
      layout.origin += span;
    }
    layout.size += span;
  }
  return layout;
}

std::size_t ElementOffset(const MemoryLayout& layout, const Region& region,
                          std::uint32_t element_size, std::uint64_t i) {
  if (layout.strides.empty()) return i * element_size;
  std::uint64_t rest = region.run.begin + i;
  auto at = static_cast<std::int64_t>(layout.origin);
  for (std::size_t d = region.box.extent.size(); d-- > 0;) {
    at += static_cast<std::int64_t>(rest % region.box.extent[d]) * layout.strides[d];
    rest /= region.box.extent[d];
  }
  return static_cast<std::size_t>(at);
}

std::uint64_t ElementNumber(const Shape& shape, const Region& region, std::uint64_t i) {
  std::uint64_t rest = region.run.begin + i;
  std::uint64_t number = 0;
  std::uint64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    number += (region.box.offset[d] + rest % region.box.extent[d]) * stride;
    rest /= region.box.extent[d];
    stride *= shape[d];
  }
  return number;
}

}  // namespace sealpoint::fuzz
