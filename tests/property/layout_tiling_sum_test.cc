// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "lib/layout/tiling.h"
#include "lib/layout/tiling_sum.h"
#include "tests/property/layout_generators.h"

namespace sealpoint::internal {
namespace {

using test::AnyIn;
using test::AnyRegion;
using test::AnyShape;
using test::AnyTiling;
using test::DisturbAtRandom;

// The exact check is the owner.
void ExpectSameVerdict(const Shape& shape, const std::vector<Region>& regions) {
  const layout::TilingSum::Key key = {AnyIn(0, ~std::uint64_t{0} - 1),
                                      AnyIn(0, ~std::uint64_t{0} - 1)};
  layout::TilingSum sum;
  for (const Region& region : regions) sum.AddRegion(key, region);
  if (ElementCount(shape).value() > 0) sum.SubtractTensor(key, shape);
  const auto fault = layout::FindTilingFault(shape, regions, 1 << 24).value();
  RC_ASSERT(sum.is_zero() == !fault.has_value());
}

RC_GTEST_PROP(TilingSumProperty, IsZeroForTilings, ()) {
  const Shape shape = AnyShape(5, 4);
  ExpectSameVerdict(shape, AnyTiling(shape));
}

RC_GTEST_PROP(TilingSumProperty, AgreesOnDisturbedTilings, ()) {
  const Shape shape = AnyShape();
  std::vector<Region> regions = AnyTiling(shape);
  for (std::uint64_t i = AnyIn(1, 2); i > 0 && !regions.empty(); --i) {
    DisturbAtRandom(shape, regions);
  }
  ExpectSameVerdict(shape, regions);
}

RC_GTEST_PROP(TilingSumProperty, AgreesOnAnyRegions, ()) {
  const Shape shape = AnyShape(3, 4);
  std::vector<Region> regions(AnyIn(0, 4));
  for (Region& region : regions) region = AnyRegion(shape);
  ExpectSameVerdict(shape, regions);
}

}  // namespace
}  // namespace sealpoint::internal
