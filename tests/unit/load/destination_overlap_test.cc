// SPDX-License-Identifier: Apache-2.0
#include "readers/load/destination_overlap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <vector>

#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::load {
namespace {

std::optional<std::pair<std::size_t, std::size_t>> Find(
    const std::vector<std::optional<Destination>>& all) {
  std::vector<const std::optional<Destination>*> pointers;
  for (const auto& one : all) pointers.push_back(&one);
  return FindOverlap(pointers);
}

// A row-major array of elements of 4 bytes.
struct Array {
  std::vector<std::byte> memory;
  Shape shape;

  explicit Array(Shape extents) : shape(std::move(extents)) {
    memory.resize(Region::Whole(shape).element_count() * 4);
  }
  // A box of it, backwards in some dimensions.
  std::optional<Destination> BoxOf(const Box& box, unsigned backwards = 0) {
    const std::vector<std::uint64_t> steps = layout::RowMajorStrides(shape);
    std::vector<std::int64_t> strides;
    std::size_t origin = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const bool is_backwards = (backwards >> d & 1) != 0;
      const auto stride = static_cast<std::int64_t>(steps[d] * 4);
      strides.push_back(is_backwards ? -stride : stride);
      origin += steps[d] * 4 * (box.offset[d] + (is_backwards ? box.extent[d] - 1 : 0));
    }
    const Region region = Box{Shape(shape.size(), 0), box.extent};
    return Destination::Make(MutableMemoryView::Host(memory, strides, origin), region, 4);
  }
};

Box AnyBox(std::mt19937& random, const Shape& shape) {
  Box box;
  for (const std::uint64_t extent : shape) {
    box.offset.push_back(random() % extent);
    box.extent.push_back(1 + random() % (extent - box.offset.back()));
  }
  return box;
}

// Two dimensions of the same stride, one in the other, and what begins behind the first row.
TEST(DestinationOverlap, TwoStepsOfOneStrideAreFound) {
  std::vector<std::byte> memory(9 * 4);
  const MutableByteSpan bytes(memory);
  const auto make = [](const MutableMemoryView& view, const Shape& shape) {
    return std::optional(Destination::Make(view, Region::Whole(shape), 4));
  };
  for (const Shape& shape : {Shape{2, 4}, Shape{4, 2}}) {
    EXPECT_TRUE(Find({make(MutableMemoryView::Host(bytes, {8, 8}), shape),
                      make(MutableMemoryView::Host(bytes.last(4)), {1})}));
  }
}

// Boxes of one array share memory exactly if they share an element.
TEST(DestinationOverlap, OfBoxesOfOneArrayIsThatOfTheirElements) {
  std::mt19937 random(7);
  int overlapping = 0;
  for (int round = 0; round < 20000; ++round) {
    Array array(round % 2 == 0 ? Shape{5, 6} : Shape{3, 4, 5});
    std::vector<Box> boxes;
    std::vector<std::optional<Destination>> destinations;
    const std::size_t count = 2 + random() % 3;
    for (std::size_t i = 0; i < count; ++i) {
      boxes.push_back(AnyBox(random, array.shape));
      destinations.push_back(array.BoxOf(boxes.back(), static_cast<unsigned>(random())));
    }
    bool any = false;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < i; ++k) any = any || layout::IntersectBoxes(boxes[i], boxes[k]);
    }
    const auto found = Find(destinations);
    ASSERT_EQ(found.has_value(), any) << "round " << round;
    if (!found) continue;
    ++overlapping;
    EXPECT_TRUE(layout::IntersectBoxes(boxes[found->first], boxes[found->second]))
        << "round " << round;
  }
  EXPECT_GT(overlapping, 1000);
  EXPECT_LT(overlapping, 19000);
}

TEST(DestinationOverlap, StridesOfNoCommonArrayCount) {
  Array array({8, 4});
  const auto every_second = Destination::Make(MutableMemoryView::Host(array.memory, {32, 4}),
                                              Region(Box{{0, 0}, {4, 2}}), 4);
  // Columns 2 and 3 of all rows: no byte is shared, but rows and pairs of rows are no array.
  EXPECT_TRUE(Find({every_second, array.BoxOf({{0, 2}, {8, 2}})}).has_value());
  EXPECT_FALSE(Find({every_second, std::nullopt}).has_value());
}

TEST(DestinationOverlap, ARunIsDense) {
  std::vector<std::byte> memory(64);
  const auto run = [&](std::size_t begin, std::size_t count) {
    return Destination::Make(
        MutableMemoryView::Host(std::span(memory).subspan(begin * 4, count * 4)),
        Region(Box{{0, 0}, {4, 8}}, sealpoint::Run{3, 3 + count}), 4);
  };
  EXPECT_FALSE(Find({run(0, 5), run(5, 11)}).has_value());
  EXPECT_FALSE(Find({run(5, 11), run(0, 5)}).has_value());
  EXPECT_TRUE(Find({run(0, 6), run(5, 11)}).has_value());
}

// 20,000 columns that all interleave: comparing each with each would take minutes.
TEST(DestinationOverlap, ManyColumnsStayCheap) {
  constexpr std::uint64_t kColumns = 20000;
  Array array({4, kColumns});
  std::vector<std::optional<Destination>> columns;
  for (std::uint64_t i = 0; i < kColumns; ++i) columns.push_back(array.BoxOf({{0, i}, {4, 1}}));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(Find(columns).has_value());
  columns.push_back(columns[123]);
  EXPECT_TRUE(Find(columns).has_value());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace sealpoint::internal::load
