// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/slabs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sealpoint::internal::interop {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Slabs, GatherWhatFits) {
  const std::vector<Extent> extents = {{4}, {0}, {6}, {1}, {10}, {10}};
  Slabs slabs(extents, 10);
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{0, 0, 4}, ExtentPart{2, 0, 6}));
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{3, 0, 1}));
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{4, 0, 10}));
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{5, 0, 10}));
  EXPECT_THAT(slabs.Next(), IsEmpty());
  EXPECT_THAT(slabs.Next(), IsEmpty());
}

TEST(Slabs, CutWhatDoesNotFit) {
  const std::vector<Extent> extents = {{2, 1}, {20, 4}, {3, 1}};
  Slabs slabs(extents, 10);
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{0, 0, 2}));
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{1, 0, 8}));
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{1, 8, 16}));
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{1, 16, 20}));
  EXPECT_THAT(slabs.Next(), ElementsAre(ExtentPart{2, 0, 3}));
  EXPECT_THAT(slabs.Next(), IsEmpty());
}

TEST(Slabs, OfNothing) { EXPECT_THAT(Slabs({}, 10).Next(), IsEmpty()); }

}  // namespace
}  // namespace sealpoint::internal::interop
