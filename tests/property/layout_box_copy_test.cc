// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "lib/layout/box_copy.h"
#include "lib/layout/region_algebra.h"
#include "tests/property/layout_generators.h"

namespace sealpoint::internal {
namespace {

using test::AnyBoxIn;
using test::AnyIn;
using test::AnyRegion;
using test::AnyShape;
using test::Elements;
using test::ShuffleAtRandom;

using BytePairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Source and target offset of every byte that a copy moves, sorted.
BytePairs PairsOf(const layout::StridedCopy& copy) {
  BytePairs pairs = {{copy.source_offset_bytes, copy.target_offset_bytes}};
  const auto repeat = [&pairs](std::uint64_t count, std::int64_t source, std::int64_t target) {
    BytePairs next;
    for (const auto& [from, to] : pairs) {
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i) {
        next.emplace_back(from + i * source, to + i * target);
      }
    }
    pairs = std::move(next);
  };
  for (std::size_t d = 0; d < copy.extent.size(); ++d) {
    repeat(copy.extent[d], copy.source_stride_bytes[d], copy.target_stride_bytes[d]);
  }
  repeat(copy.element_size, 1, 1);
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

std::vector<std::int64_t> AnyStrides(const Shape& extent, std::uint64_t element_size) {
  // Dense, or dense with one dimension padded, reversed or repeated: what merges and what does not.
  std::vector<std::int64_t> strides = layout::DenseStridesBytes(extent, element_size);
  if (strides.empty() || AnyIn(0, 2) == 0) return strides;
  std::int64_t& stride = strides[AnyIn(0, strides.size() - 1)];
  switch (AnyIn(0, 2)) {
    case 0:
      stride += static_cast<std::int64_t>(AnyIn(1, 3) * element_size);
      break;
    case 1:
      stride = -stride;
      break;
    default:
      stride = 0;
      break;
  }
  return strides;
}

RC_GTEST_PROP(StridedCopyProperty, NormalizeKeepsTheBytesAndWhereTheyGo, ()) {
  layout::StridedCopy copy;
  copy.extent = Shape(AnyIn(0, 5));
  for (std::uint64_t& extent : copy.extent) extent = AnyIn(0, 9) == 0 ? 0 : AnyIn(1, 4);
  copy.element_size = std::uint64_t{1} << AnyIn(0, 4);
  copy.source_stride_bytes = AnyStrides(copy.extent, copy.element_size);
  copy.target_stride_bytes = AnyStrides(copy.extent, copy.element_size);
  const BytePairs before = PairsOf(copy);
  const std::uint64_t byte_count = copy.byte_count();
  copy.Normalize();
  RC_ASSERT(PairsOf(copy) == before);
  RC_ASSERT(copy.byte_count() == byte_count);
  const layout::StridedCopy once = copy;
  copy.Normalize();
  RC_ASSERT(copy.extent == once.extent);
  RC_ASSERT(copy.element_size == once.element_size);
}

// Memory that holds the elements of a box of the tensor in any dimension order, with padding.
struct Strided {
  Box origin;
  std::vector<std::int64_t> strides;
  std::size_t size = 0;
};

Strided AnyMemory(const Box& origin, std::uint64_t element_size) {
  std::vector<std::size_t> order(origin.extent.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (AnyIn(0, 1) == 0) ShuffleAtRandom(order);
  Strided memory{.origin = origin, .strides = std::vector<std::int64_t>(order.size()), .size = 0};
  std::uint64_t step = element_size;
  for (std::size_t i = order.size(); i-- > 0;) {
    memory.strides[order[i]] = static_cast<std::int64_t>(step);
    step *= origin.extent[order[i]] + AnyIn(0, 1);
  }
  memory.size = step;
  return memory;
}

// Where a tensor element lies in it.
std::size_t Locate(const Shape& shape, const Strided& memory, std::uint64_t element) {
  std::uint64_t at = 0;
  for (std::size_t d = shape.size(); d-- > 0;) {
    at += (element % shape[d] - memory.origin.offset[d]) *
          static_cast<std::uint64_t>(memory.strides[d]);
    element /= shape[d];
  }
  return at;
}

struct Case {
  Shape shape;
  std::uint64_t element_size = 0;
  Region linear;
  Box part;
  Strided memory;
};

Case AnyCase() {
  Case any{.shape = AnyShape(),
           .element_size = *rc::gen::element<std::uint64_t>(1, 2, 3, 4, 8, 16)};
  any.linear = AnyRegion(any.shape);
  const std::vector<Box> parts = layout::DecomposeRun(any.linear);
  any.part = AnyBoxIn(parts[AnyIn(0, parts.size() - 1)]);
  Box origin = any.part;  // any box around the part
  for (std::size_t d = 0; d < origin.offset.size(); ++d) {
    const std::uint64_t before = AnyIn(0, origin.offset[d]);
    origin.offset[d] -= before;
    origin.extent[d] += before;
    origin.extent[d] += AnyIn(0, any.shape[d] - origin.offset[d] - origin.extent[d]);
  }
  any.memory = AnyMemory(origin, any.element_size);
  return any;
}

Bytes Pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 151 + i / 256 + 1);
  return bytes;
}

// Calls move(byte offset in the linear buffer, byte offset in the strided memory) for each element
// of the part, by walking over the elements of the region.
template <typename Move>
void ForEachElement(const Case& any, Move move) {
  const auto held = Elements(any.shape, any.linear);
  for (const std::uint64_t element : Elements(any.shape, any.part)) {
    const auto found = std::find(held.begin(), held.end(), element);
    move(static_cast<std::size_t>(found - held.begin()) * any.element_size,
         Locate(any.shape, any.memory, element));
  }
}

RC_GTEST_PROP(CopyFromLinearProperty, MovesTheElementsOfThePartAndNothingElse, ()) {
  const Case any = AnyCase();
  const Bytes source = Pattern(any.linear.element_count() * any.element_size);
  Bytes expected(any.memory.size);
  ForEachElement(any, [&](std::size_t from, std::size_t to) {
    for (std::size_t i = 0; i < any.element_size; ++i) expected[to + i] = source[from + i];
  });
  Bytes actual(any.memory.size);
  layout::RunStridedCopy(layout::CopyFromLinear(any.linear, any.part, any.memory.origin,
                                                any.memory.strides, any.element_size),
                         source.data(), actual.data());
  RC_ASSERT(actual == expected);
}

RC_GTEST_PROP(CopyToLinearProperty, MovesTheElementsOfThePartAndNothingElse, ()) {
  const Case any = AnyCase();
  const Bytes source = Pattern(any.memory.size);
  Bytes expected(any.linear.element_count() * any.element_size);
  ForEachElement(any, [&](std::size_t to, std::size_t from) {
    for (std::size_t i = 0; i < any.element_size; ++i) expected[to + i] = source[from + i];
  });
  Bytes actual(expected.size());
  layout::RunStridedCopy(layout::CopyToLinear(any.linear, any.part, any.memory.origin,
                                              any.memory.strides, any.element_size),
                         source.data(), actual.data());
  RC_ASSERT(actual == expected);
}

}  // namespace
}  // namespace sealpoint::internal
