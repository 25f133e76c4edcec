// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sealpoint::internal::layout {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// A 1-d region of elements of 4 bytes in chunks of 16 bytes: 4 elements each.
HeldRun Held(std::uint64_t begin, std::uint64_t end) {
  return {.run = {begin, end}, .element_size = 4, .chunk_size_bytes = 16};
}

void ExpectShare(const HolderShare& share, std::size_t held_index, std::size_t holder, Run run) {
  EXPECT_EQ(share.held_index, held_index);
  EXPECT_EQ(share.holder, holder);
  EXPECT_EQ(share.run, run);
}

TEST(DivideEvenly, GivesOneHolderEverything) {
  const std::vector<HeldRun> held = {Held(3, 30), Held(0, 5)};
  const auto shares = DivideEvenly(held, 1);
  ASSERT_THAT(shares, SizeIs(2));
  ExpectShare(shares[0], 0, 0, {3, 30});
  ExpectShare(shares[1], 1, 0, {0, 5});
}

TEST(DivideEvenly, CutsOneRegionAtChunksFromItsBegin) {
  // 27 elements from 3 on: 108 bytes in 7 chunks, 36 bytes each; 3 + 2 + 2 chunks.
  const std::vector<HeldRun> held = {Held(3, 30)};
  const auto shares = DivideEvenly(held, 3);
  ASSERT_THAT(shares, SizeIs(3));
  ExpectShare(shares[0], 0, 0, {3, 15});
  ExpectShare(shares[1], 0, 1, {15, 23});
  ExpectShare(shares[2], 0, 2, {23, 30});
}

TEST(DivideEvenly, CutsAcrossRegions) {
  // 32 + 4 + 48 bytes for 2 holders: the first one's 42 bytes end inside the third region.
  const std::vector<HeldRun> held = {Held(0, 8), Held(0, 1), Held(4, 16)};
  const auto shares = DivideEvenly(held, 2);
  ASSERT_THAT(shares, SizeIs(4));
  ExpectShare(shares[0], 0, 0, {0, 8});
  ExpectShare(shares[1], 1, 0, {0, 1});
  ExpectShare(shares[2], 2, 0, {4, 8});
  ExpectShare(shares[3], 2, 1, {8, 16});
}

TEST(DivideEvenly, LeavesHoldersInWhoseShareNoChunkBeginsWithoutWork) {
  const std::vector<HeldRun> held = {Held(0, 8)};
  const auto shares = DivideEvenly(held, 5);
  ASSERT_THAT(shares, SizeIs(2));
  ExpectShare(shares[0], 0, 0, {0, 4});
  ExpectShare(shares[1], 0, 2, {4, 8});
}

TEST(DivideEvenly, GivesNothingForNothing) { EXPECT_THAT(DivideEvenly({}, 3), IsEmpty()); }

TEST(DivideEvenly, MeasuresBytesWhateverTheChunks) {
  std::vector<HeldRun> held = {Held(0, 8), Held(0, 8)};
  held[1].chunk_size_bytes = 4;
  const auto shares = DivideEvenly(held, 2);
  ASSERT_THAT(shares, SizeIs(2));
  ExpectShare(shares[0], 0, 0, {0, 8});
  ExpectShare(shares[1], 1, 1, {0, 8});
}

TEST(DivideEvenly, DividesAScalarToTheFirstHolder) {
  const std::vector<HeldRun> held = {
      {.run = Region::Whole({}).run, .element_size = 8, .chunk_size_bytes = 4096}};
  const auto shares = DivideEvenly(held, 4);
  ASSERT_THAT(shares, SizeIs(1));
  EXPECT_EQ(shares[0].run, Region::Whole({}).run);
  EXPECT_EQ(shares[0].holder, 0u);
}

TEST(DivideEvenly, WorksBeyond32Bits) {
  const std::vector<HeldRun> held = {Held(0, (1ull << 34) + 1)};  // 2^32 + 1 chunks
  const auto shares = DivideEvenly(held, 2);
  ASSERT_THAT(shares, SizeIs(2));
  ExpectShare(shares[0], 0, 0, {0, (1ull << 33) + 4});
  ExpectShare(shares[1], 0, 1, {(1ull << 33) + 4, (1ull << 34) + 1});
}

TEST(DivideEvenly, EndsALastChunkWhoseFullEndWouldNotFit) {
  const std::vector<HeldRun> held = {
      {.run = {0, ~0ull}, .element_size = 1, .chunk_size_bytes = 1ull << 63}};
  const auto shares = DivideEvenly(held, 2);
  ASSERT_THAT(shares, SizeIs(2));
  ExpectShare(shares[1], 0, 1, {1ull << 63, ~0ull});
}

TEST(DivideEvenlyDeathTest, RefusesNoHolder) {
  const std::vector<HeldRun> held = {Held(0, 8)};
  EXPECT_DEATH(DivideEvenly(held, 0), "holder_count > 0");
}

}  // namespace
}  // namespace sealpoint::internal::layout
