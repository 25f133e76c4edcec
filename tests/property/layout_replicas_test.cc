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

std::vector<layout::HeldRun> AnyHeldRuns() {
  std::vector<layout::HeldRun> held(AnyIn(0, 6));
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i].run = AnyRegion(AnyShape()).run;
    held[i].element_size = 1u << AnyIn(0, 4);
    held[i].chunk_size_bytes = std::uint64_t{held[i].element_size} << AnyIn(0, 5);
  }
  return held;
}

std::uint64_t ElementsPerChunk(const layout::HeldRun& held) {
  return held.chunk_size_bytes / held.element_size;
}

RC_GTEST_PROP(DivideEvenlyProperty, PartitionsEveryRegionInOrder, ()) {
  const std::vector<layout::HeldRun> held = AnyHeldRuns();
  const std::vector<layout::HolderShare> shares = layout::DivideEvenly(held, AnyIn(1, 9));
  std::size_t next = 0;
  for (std::size_t i = 0; i < held.size(); ++i) {
    std::uint64_t at = held[i].run.begin;
    for (; next < shares.size() && shares[next].held_index == i; ++next) {
      RC_ASSERT(shares[next].run.begin == at);
      RC_ASSERT(shares[next].run.end > at);
      at = shares[next].run.end;
    }
    RC_ASSERT(at == held[i].run.end);
  }
  RC_ASSERT(next == shares.size());
}

RC_GTEST_PROP(DivideEvenlyProperty, CutsAtChunksOfTheRegion, ()) {
  const std::vector<layout::HeldRun> held = AnyHeldRuns();
  for (const layout::HolderShare& share : layout::DivideEvenly(held, AnyIn(1, 9))) {
    const layout::HeldRun& of = held[share.held_index];
    RC_ASSERT((share.run.begin - of.run.begin) % ElementsPerChunk(of) == 0);
  }
}

RC_GTEST_PROP(DivideEvenlyProperty, GivesHoldersEvenBytesButForLessThanAChunk, ()) {
  const std::vector<layout::HeldRun> held = AnyHeldRuns();
  const std::size_t holder_count = AnyIn(1, 9);
  std::vector<std::uint64_t> bytes(holder_count, 0);
  std::uint64_t total = 0;
  std::uint64_t chunk_max = 0;
  for (const layout::HeldRun& held_run : held)
    chunk_max = std::max(chunk_max, held_run.chunk_size_bytes);
  for (const layout::HolderShare& share : layout::DivideEvenly(held, holder_count)) {
    const std::uint64_t size = share.run.size() * held[share.held_index].element_size;
    bytes[share.holder] += size;
    total += size;
  }
  for (const std::uint64_t one : bytes) {
    const std::uint64_t even = total / holder_count;
    RC_ASSERT(one <= even + chunk_max && even <= one + chunk_max);
  }
}

RC_GTEST_PROP(DivideEvenlyProperty, GivesFewPieces, ()) {
  const std::vector<layout::HeldRun> held = AnyHeldRuns();
  const std::size_t holder_count = AnyIn(1, 9);
  RC_ASSERT(layout::DivideEvenly(held, holder_count).size() <= held.size() + holder_count - 1);
}

RC_GTEST_PROP(DivideEvenlyProperty, DependsOnItsArgumentsAlone, ()) {
  const std::vector<layout::HeldRun> held = AnyHeldRuns();
  const std::size_t holder_count = AnyIn(1, 9);
  const std::vector<layout::HolderShare> first = layout::DivideEvenly(held, holder_count);
  const std::vector<layout::HeldRun> copy = held;
  const std::vector<layout::HolderShare> second = layout::DivideEvenly(copy, holder_count);
  RC_ASSERT(first.size() == second.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    RC_ASSERT(first[i].held_index == second[i].held_index);
    RC_ASSERT(first[i].holder == second[i].holder);
    RC_ASSERT(first[i].run == second[i].run);
  }
}

}  // namespace
}  // namespace sealpoint::internal
