// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lib/layout/replicas.h"
#include "tests/property/layout_generators.h"

namespace sealpoint::internal {
namespace {

using test::AnyIn;
using test::AnyRegion;
using test::AnyShape;

std::vector<HeldRegion> AnyHeldRegions() {
  std::vector<HeldRegion> held(AnyIn(0, 6));
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i].region = AnyRegion(AnyShape());
    held[i].element_size = 1u << AnyIn(0, 4);
    held[i].chunk_size_bytes = std::uint64_t{held[i].element_size} << AnyIn(0, 5);
  }
  return held;
}

std::uint64_t ElementsPerChunk(const HeldRegion& held) {
  return held.chunk_size_bytes / held.element_size;
}

RC_GTEST_PROP(DivideEvenlyProperty, PartitionsEveryRegionInOrder, ()) {
  const std::vector<HeldRegion> held = AnyHeldRegions();
  const std::vector<Piece> pieces = DivideEvenly(held, AnyIn(1, 9));
  std::size_t next = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    std::uint64_t at = held[i].region.run.begin;
    for (; next < pieces.size() && pieces[next].held_index == i; ++next) {
      RC_ASSERT(pieces[next].region.box == held[i].region.box);
      RC_ASSERT(pieces[next].region.run.begin == at);
      RC_ASSERT(pieces[next].region.run.end > at);
      at = pieces[next].region.run.end;
    }
    RC_ASSERT(at == held[i].region.run.end);
  }
  RC_ASSERT(next == pieces.size());
}

RC_GTEST_PROP(DivideEvenlyProperty, CutsAtChunksOfTheRegion, ()) {
  const std::vector<HeldRegion> held = AnyHeldRegions();
  for (const Piece& piece : DivideEvenly(held, AnyIn(1, 9))) {
    const HeldRegion& of = held[piece.held_index];
    RC_ASSERT((piece.region.run.begin - of.region.run.begin) % ElementsPerChunk(of) == 0);
  }
}

RC_GTEST_PROP(DivideEvenlyProperty, GivesHoldersEvenBytesButForLessThanAChunk, ()) {
  const std::vector<HeldRegion> held = AnyHeldRegions();
  const std::size_t holder_count = AnyIn(1, 9);
  std::vector<std::uint64_t> bytes(holder_count, 0);
  std::uint64_t total = 0;
  std::uint64_t chunk_max = 0;
  for (const HeldRegion& one : held) chunk_max = std::max(chunk_max, one.chunk_size_bytes);
  for (const Piece& piece : DivideEvenly(held, holder_count)) {
    const std::uint64_t size = piece.region.element_count() * held[piece.held_index].element_size;
    bytes[piece.holder] += size;
    total += size;
  }
  for (const std::uint64_t one : bytes) {
    const std::uint64_t even = total / holder_count;
    RC_ASSERT(one <= even + chunk_max && even <= one + chunk_max);
  }
}

RC_GTEST_PROP(DivideEvenlyProperty, GivesFewPieces, ()) {
  const std::vector<HeldRegion> held = AnyHeldRegions();
  const std::size_t holder_count = AnyIn(1, 9);
  RC_ASSERT(DivideEvenly(held, holder_count).size() <= held.size() + holder_count - 1);
}

RC_GTEST_PROP(DivideEvenlyProperty, DependsOnItsArgumentsAlone, ()) {
  const std::vector<HeldRegion> held = AnyHeldRegions();
  const std::size_t holder_count = AnyIn(1, 9);
  const std::vector<Piece> first = DivideEvenly(held, holder_count);
  const std::vector<HeldRegion> copy = held;
  const std::vector<Piece> second = DivideEvenly(copy, holder_count);
  RC_ASSERT(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    RC_ASSERT(first[i].held_index == second[i].held_index);
    RC_ASSERT(first[i].holder == second[i].holder);
    RC_ASSERT(first[i].region == second[i].region);
  }
}

}  // namespace
}  // namespace sealpoint::internal
