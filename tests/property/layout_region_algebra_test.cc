// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/layout/region_algebra.h"
#include "tests/property/layout_generators.h"

namespace sealpoint::internal {
namespace {

using test::AnyBoxIn;
using test::AnyIn;
using test::AnyRegion;
using test::AnyShape;
using test::Elements;

using ElementList = std::vector<std::uint64_t>;

ElementList ElementsOfAll(const Shape& shape, const std::vector<Box>& boxes) {
  ElementList all;
  for (const Box& box : boxes) {
    const ElementList elements = Elements(shape, box);
    all.insert(all.end(), elements.begin(), elements.end());
  }
  return all;
}

RC_GTEST_PROP(DecomposeRunProperty, GivesTheElementsOfTheRunInOrder, ()) {
  const Shape shape = AnyShape(5, 4);
  const Region region = AnyRegion(shape);
  RC_ASSERT(ElementsOfAll(shape, layout::DecomposeRun(region)) == Elements(shape, region));
}

RC_GTEST_PROP(DecomposeRunProperty, GivesFewBoxesAndNoEmptyOne, ()) {
  const Shape shape = AnyShape(5, 4);
  const std::vector<Box> boxes = layout::DecomposeRun(AnyRegion(shape));
  RC_ASSERT(boxes.size() <= std::max<std::size_t>(1, 2 * shape.size()) - (shape.empty() ? 0 : 1));
  for (const Box& box : boxes) {
    RC_ASSERT(CheckRegion(shape, Region::Of(box)).ok());
  }
}

RC_GTEST_PROP(IntersectRegionsProperty, EqualsTheCommonElementsEachOnce, ()) {
  const Shape shape = AnyShape();
  const Region a = AnyRegion(shape);
  const Region b = AnyRegion(shape);
  ElementList of_a = Elements(shape, a);
  ElementList of_b = Elements(shape, b);
  std::sort(of_a.begin(), of_a.end());
  std::sort(of_b.begin(), of_b.end());
  ElementList expected;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                        std::back_inserter(expected));
  ElementList actual = ElementsOfAll(shape, layout::IntersectRegions(a, b));
  std::sort(actual.begin(), actual.end());
  RC_ASSERT(actual == expected);
}

RC_GTEST_PROP(SubRunProperty, TakesThoseElementsOfTheRegion, ()) {
  const Shape shape = AnyShape();
  const Region region = AnyRegion(shape);
  const std::uint64_t begin = AnyIn(0, region.element_count() - 1);
  const std::uint64_t end = AnyIn(begin + 1, region.element_count());
  const ElementList all = Elements(shape, region);
  const ElementList expected(all.begin() + static_cast<std::ptrdiff_t>(begin),
                             all.begin() + static_cast<std::ptrdiff_t>(end));
  RC_ASSERT(Elements(shape, layout::SubRun(region, begin, end)) == expected);
}

RC_GTEST_PROP(CoveringRunProperty, BeginsAndEndsWithAnElementOfThePart, ()) {
  const Shape shape = AnyShape();
  const Box box = AnyBoxIn(Region::Whole(shape).box);
  const Box part = AnyBoxIn(box);
  const ElementList of_run = Elements(shape, Region{box, layout::CoveringRun(box, part)});
  const ElementList of_part = Elements(shape, part);
  RC_ASSERT(of_run.front() == of_part.front());
  RC_ASSERT(of_run.back() == of_part.back());
}

RC_GTEST_PROP(BoxContainsProperty, IsTheInclusionOfElements, ()) {
  const Shape shape = AnyShape();
  const Box a = AnyRegion(shape).box;
  const Box b = AnyRegion(shape).box;
  const ElementList of_a = Elements(shape, a);
  const ElementList of_b = Elements(shape, b);
  RC_ASSERT(layout::BoxContains(a, b) ==
            std::includes(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()));
  RC_ASSERT(layout::BoxElementCount(a) == of_a.size());
}

RC_GTEST_PROP(CheckRegionProperty, TakesExactlyTheRegionsInsideTheShape, ()) {
  const Shape shape = AnyShape(3, 4);
  Region region = AnyRegion(shape);
  if (!shape.empty() && AnyIn(0, 1) == 0) {
    const std::size_t d = AnyIn(0, shape.size() - 1);
    (AnyIn(0, 1) == 0 ? region.box.offset : region.box.extent)[d] = AnyIn(0, 5);
  }
  if (AnyIn(0, 1) == 0) (AnyIn(0, 1) == 0 ? region.run.begin : region.run.end) = AnyIn(0, 20);
  bool valid = region.run.begin < region.run.end;
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    valid = valid && region.box.extent[d] > 0 &&
            region.box.offset[d] + region.box.extent[d] <= shape[d];
    count *= region.box.extent[d];
  }
  valid = valid && region.run.end <= count;
  RC_CLASSIFY(valid, "valid");
  RC_ASSERT(CheckRegion(shape, region).ok() == valid);
}

}  // namespace
}  // namespace sealpoint::internal
