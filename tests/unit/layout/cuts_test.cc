// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/cuts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "lib/layout/box_copy.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::layout {
namespace {

using ::testing::ElementsAre;
using Index = std::vector<std::uint64_t>;

std::mt19937 numbers(7);  // NOLINT(cert-msc51-cpp): the same cases in each run
std::uint64_t AnyIn(std::uint64_t min, std::uint64_t max) {
  return min + numbers() % (max - min + 1);
}

// The positions of a box, row-major.
std::vector<Index> PositionsOf(const Box& box) {
  std::vector<Index> positions = {{}};
  for (std::size_t d = 0; d < box.extent.size(); ++d) {
    std::vector<Index> next;
    for (const Index& position : positions) {
      for (std::uint64_t i = 0; i < box.extent[d]; ++i) {
        next.push_back(position);
        next.back().push_back(box.offset[d] + i);
      }
    }
    positions = std::move(next);
  }
  return positions;
}

// Up to three dimensions; one case in three is a run.
Region AnyRegion() {
  Box box;
  for (std::size_t d = AnyIn(0, 3); d > 0; --d) {
    box.offset.push_back(AnyIn(0, 6));
    box.extent.push_back(AnyIn(1, 6));
  }
  Region region = Region::Of(box);
  if (AnyIn(0, 2) == 0) {
    region.run.begin = AnyIn(0, region.run.end - 1);
    region.run.end = AnyIn(region.run.begin + 1, region.run.end);
  }
  return region;
}

std::vector<std::uint64_t> AnyCuts(std::size_t ndim) {
  std::vector<std::uint64_t> cuts(ndim);
  for (std::uint64_t& cut : cuts) cut = AnyIn(0, 7);
  return cuts;
}

Index CellOf(Index position, const std::vector<std::uint64_t>& cuts) {
  for (std::size_t d = 0; d < cuts.size(); ++d) {
    position[d] = cuts[d] == 0 ? 0 : position[d] / cuts[d];
  }
  return position;
}

TEST(CutRegion, EachBoxIsTheRegionsPartOfOneCell) {
  for (int i = 0; i < 3000; ++i) {
    const Region region = AnyRegion();
    const auto cuts = AnyCuts(region.box.extent.size());
    const std::vector<Box> boxes = CutRegion(region, cuts);
    ASSERT_EQ(boxes.size(), CountCutBoxes(region, cuts)) << region.ToString();
    const std::vector<Index> all = PositionsOf(region.box);
    const std::vector<Index> expected(all.begin() + static_cast<std::ptrdiff_t>(region.run.begin),
                                      all.begin() + static_cast<std::ptrdiff_t>(region.run.end));
    std::vector<Index> found;
    std::set<Index> cells;
    for (const Box& box : boxes) {
      const std::vector<Index> positions = PositionsOf(box);
      cells.insert(CellOf(positions.front(), cuts));
      for (const Index& position : positions) {
        ASSERT_EQ(CellOf(position, cuts), CellOf(positions.front(), cuts)) << region.ToString();
      }
      found.insert(found.end(), positions.begin(), positions.end());
    }
    ASSERT_THAT(found, ::testing::UnorderedElementsAreArray(expected)) << region.ToString();
    if (expected.size() < all.size()) continue;
    ASSERT_EQ(cells.size(), boxes.size()) << region.ToString();
  }
}

TEST(CutRegion, NextMultipleMayExceed64Bits) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
  const Region region = Region::Of({.offset = {kHalf}, .extent = {kHalf - 1}});
  EXPECT_THAT(CutRegion(region, {kHalf + 5}),
              ElementsAre(Box{.offset = {kHalf}, .extent = {5}},
                          Box{.offset = {kHalf + 5}, .extent = {kHalf - 6}}));
  EXPECT_THAT(CutRegion(region, {~std::uint64_t{0}}), ElementsAre(region.box));
  EXPECT_EQ(CountCutBoxes(region, {1}), kHalf - 1);
}

// Each element has the address in the part's view that it has in the view of all.
TEST(ViewOfBox, HasTheElementsOfTheBox) {
  std::vector<std::uint16_t> memory(4096);
  const auto base = reinterpret_cast<std::uintptr_t>(memory.data());
  int dense_count = 0;
  for (int i = 0; i < 3000; ++i) {
    const Region region = AnyRegion();
    const bool is_run = region.run.end != BoxElementCount(region.box) || region.run.begin != 0;
    std::vector<std::int64_t> strides = DenseStridesBytes(region.box.extent, 2);
    MemoryView view = MemoryView::Host(memory.data(), region.element_count() * 2);
    std::int64_t first = -static_cast<std::int64_t>(region.run.begin * 2);
    if (!is_run && !strides.empty() && AnyIn(0, 1) == 0) {
      for (std::int64_t& stride : strides) stride = 2 * stride + 2;
      strides[0] = -strides[0];
      first = static_cast<std::int64_t>(4000);
      view = MemoryView::Host(memory.data(), 8192, strides, 4000);
    }
    for (const Box& box : CutRegion(region, AnyCuts(strides.size()))) {
      const MemoryView part = ViewOfBox(view, region, box, 2);
      dense_count += part.is_dense() ? 1 : 0;
      const auto part_strides =
          part.is_dense() ? DenseStridesBytes(box.extent, 2) : part.strides_bytes;
      ASSERT_EQ(part.size_bytes, part.is_dense() ? BoxElementCount(box) * 2 : view.size_bytes);
      for (const Index& position : PositionsOf(box)) {
        std::int64_t expected = static_cast<std::int64_t>(base) + first;
        auto found = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(part.data) +
                                               part.origin_bytes);
        for (std::size_t d = 0; d < position.size(); ++d) {
          expected += static_cast<std::int64_t>(position[d] - region.box.offset[d]) * strides[d];
          found += static_cast<std::int64_t>(position[d] - box.offset[d]) * part_strides[d];
        }
        ASSERT_EQ(found, expected) << region.ToString();
      }
    }
  }
  EXPECT_GT(dense_count, 1000);
}

TEST(SteppedHull, BeginsAndEndsWithSelectedPositions) {
  for (int i = 0; i < 3000; ++i) {
    const Box box = AnyRegion().box;
    std::vector<std::uint64_t> origin = box.offset;
    std::vector<std::uint64_t> steps;
    for (std::uint64_t& at : origin) {
      at -= AnyIn(0, at);
      steps.push_back(AnyIn(1, 8));
    }
    std::vector<Index> selected;
    for (const Index& position : PositionsOf(box)) {
      bool is_selected = true;
      for (std::size_t d = 0; d < steps.size(); ++d) {
        is_selected = is_selected && (position[d] - origin[d]) % steps[d] == 0;
      }
      if (is_selected) selected.push_back(position);
    }
    const std::optional<Box> hull = SteppedHull(box, origin, steps);
    ASSERT_EQ(hull.has_value(), !selected.empty());
    if (!hull) continue;
    ASSERT_EQ(hull->offset, selected.front());
    for (std::size_t d = 0; d < steps.size(); ++d) {
      ASSERT_EQ(hull->offset[d] + hull->extent[d] - 1, selected.back()[d]);
    }
  }
}

}  // namespace
}  // namespace sealpoint::internal::layout
