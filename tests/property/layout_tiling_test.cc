// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include "lib/layout/tiling.h"
#include "tests/property/layout_generators.h"

namespace sealpoint::internal {
namespace {

using test::AnyIn;
using test::AnyRegion;
using test::AnyShape;
using test::AnyTiling;
using test::DisturbAtRandom;
using test::Elements;

constexpr std::uint64_t kManyCorners = 1 << 24;

std::vector<std::uint64_t> TimesCovered(const Shape& shape, const std::vector<Region>& regions) {
  std::vector<std::uint64_t> times(ElementCount(shape).value(), 0);
  for (const Region& region : regions) {
    for (const std::uint64_t element : Elements(shape, region)) ++times[element];
  }
  return times;
}

std::uint64_t ElementNumber(const Shape& shape, const std::vector<std::uint64_t>& coordinates) {
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) number = number * shape[d] + coordinates[d];
  return number;
}

// Row-major order is the lexicographic order of the coordinates: the first element that is not
// covered once is the one to report.
void ExpectTheFaultOfCounting(const Shape& shape, const std::vector<Region>& regions) {
  const auto fault = layout::FindTilingFault(shape, regions, kManyCorners).value();
  const std::vector<std::uint64_t> times = TimesCovered(shape, regions);
  const auto bad = std::find_if(times.begin(), times.end(), [](auto count) { return count != 1; });
  RC_ASSERT(fault.has_value() == (bad != times.end()));
  if (!fault) return;
  RC_ASSERT(fault->element.size() == shape.size());
  const std::uint64_t element = ElementNumber(shape, fault->element);
  RC_ASSERT(element == static_cast<std::uint64_t>(bad - times.begin()));
  RC_ASSERT(fault->times_covered == *bad);
  RC_ASSERT(fault->holders.size() == std::min<std::uint64_t>(2, *bad));
  for (const std::size_t holder : fault->holders) {
    const auto held = Elements(shape, regions[holder]);
    RC_ASSERT(std::find(held.begin(), held.end(), element) != held.end());
  }
  RC_ASSERT(std::is_sorted(fault->holders.begin(), fault->holders.end()));
  RC_ASSERT(std::set<std::size_t>(fault->holders.begin(), fault->holders.end()).size() ==
            fault->holders.size());
}

RC_GTEST_PROP(TilingProperty, FindsNoFaultInATiling, ()) {
  const Shape shape = AnyShape(5, 4);
  RC_ASSERT(!layout::FindTilingFault(shape, AnyTiling(shape), kManyCorners).value().has_value());
}

RC_GTEST_PROP(TilingProperty, AgreesWithCountingOnDisturbedTilings, ()) {
  const Shape shape = AnyShape();
  std::vector<Region> regions = AnyTiling(shape);
  for (std::uint64_t i = AnyIn(1, 2); i > 0 && !regions.empty(); --i) {
    DisturbAtRandom(shape, regions);
  }
  ExpectTheFaultOfCounting(shape, regions);
}

RC_GTEST_PROP(TilingProperty, AgreesWithCountingOnAnyRegions, ()) {
  const Shape shape = AnyShape(3, 4);
  std::vector<Region> regions(AnyIn(0, 4));
  for (Region& region : regions) region = AnyRegion(shape);
  ExpectTheFaultOfCounting(shape, regions);
}

// The same tensor blown up: every extent times a factor, so that corners need more bits.
RC_GTEST_PROP(TilingProperty, FindsTheSameFaultAtAnyScale, ()) {
  const Shape shape = AnyShape(4, 4);
  std::vector<Region> regions;
  for (const Region& region : AnyTiling(shape)) regions.push_back(Region::Of(region.box));
  DisturbAtRandom(shape, regions);
  for (Region& region : regions) region = Region::Of(region.box);
  auto expected = layout::FindTilingFault(shape, regions, kManyCorners).value();

  const std::uint64_t scale = std::uint64_t{1} << AnyIn(1, shape.empty() ? 1 : 55 / shape.size());
  Shape scaled = shape;
  for (std::uint64_t& extent : scaled) extent *= scale;
  for (Region& region : regions) {
    for (std::uint64_t& offset : region.box.offset) offset *= scale;
    for (std::uint64_t& extent : region.box.extent) extent *= scale;
    region = Region::Of(region.box);
  }
  const auto actual = layout::FindTilingFault(scaled, regions, kManyCorners).value();
  RC_ASSERT(actual.has_value() == expected.has_value());
  if (!expected) return;
  for (std::uint64_t& coordinate : expected->element) coordinate *= scale;
  RC_ASSERT(actual->element == expected->element);
  RC_ASSERT(actual->times_covered == expected->times_covered);
  RC_ASSERT(actual->holders == expected->holders);
}

}  // namespace
}  // namespace sealpoint::internal
