// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/requested_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace sealpoint::internal::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Ranges of chunks of 10 bytes, which all lie back to back.
class DivideRangesTest : public ::testing::Test {
 protected:
  void AddRange(std::uint32_t blob, std::uint64_t offset, std::size_t count,
                bool in_place = false) {
    plan_.ranges.push_back({.blob = blob,
                            .offset = offset,
                            .size = 10 * count,
                            .first_chunk = plan_.chunks.size(),
                            .chunk_count = count,
                            .in_place = in_place ? memory_.data() : nullptr});
    for (std::size_t i = 0; i < count; ++i) {
      plan_.chunks.push_back({.blob = blob, .offset = offset + 10 * i, .stored_size = 10});
    }
  }
  using Row = std::array<std::uint64_t, 5>;  // blob, offset, size, first chunk, count
  static std::vector<Row> RowsOf(const std::vector<transfer::PlanRange>& ranges) {
    std::vector<Row> rows;
    for (const transfer::PlanRange& plan_range : ranges) {
      rows.push_back({plan_range.blob, plan_range.offset, plan_range.size, plan_range.first_chunk,
                      plan_range.chunk_count});
    }
    return rows;
  }

  std::array<std::byte, 100> memory_{};
  load::ReadPlanData plan_;
};

TEST_F(DivideRangesTest, NothingIsShared) {
  AddRange(0, 100, 3);
  AddRange(1, 100, 2);
  const DividedRanges divided =
      DivideRanges(plan_, {{{0, 0, 100}, 0}, {{0, 130, 140}, 1}, {{2, 0, 900}, 0}});
  EXPECT_THAT(RowsOf(divided.alone), ElementsAre(Row{0, 100, 30, 0, 3}, Row{1, 100, 20, 3, 2}));
  EXPECT_THAT(divided.shared, IsEmpty());
}

TEST_F(DivideRangesTest, CutsWhereChunksOfOthersBeginAndEnd) {
  AddRange(0, 100, 5, true);
  AddRange(1, 0, 2);
  AddRange(1, 50, 1);
  const DividedRanges divided = DivideRanges(
      plan_, {{{0, 110, 120}, 0}, {{0, 120, 130}, 1}, {{1, 0, 20}, 0}, {{1, 50, 70}, 0}});
  EXPECT_THAT(RowsOf(divided.alone), ElementsAre(Row{0, 100, 10, 0, 1}, Row{0, 130, 20, 3, 2}));
  EXPECT_THAT(RowsOf(divided.shared),
              ElementsAre(Row{0, 110, 20, 1, 2}, Row{1, 0, 20, 5, 2}, Row{1, 50, 10, 7, 1}));
  EXPECT_EQ(divided.alone[0].in_place, memory_.data());
  EXPECT_EQ(divided.alone[1].in_place, memory_.data() + 30);
  EXPECT_EQ(divided.shared[1].in_place, nullptr);
}

TEST_F(DivideRangesTest, OneSharedRangeMayHoldSeveralOfThePlan) {
  AddRange(0, 0, 1);
  AddRange(0, 20, 1);
  AddRange(0, 40, 1);
  const DividedRanges divided = DivideRanges(plan_, {{{0, 0, 30}, 0}});
  EXPECT_THAT(RowsOf(divided.shared), ElementsAre(Row{0, 0, 10, 0, 1}, Row{0, 20, 10, 1, 1}));
  EXPECT_THAT(RowsOf(divided.alone), ElementsAre(Row{0, 40, 10, 2, 1}));
}

}  // namespace
}  // namespace sealpoint::internal::collective
