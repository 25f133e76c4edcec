// SPDX-License-Identifier: Apache-2.0
//
// How a delivery divides memory, copies and ranges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "lib/transfer/delivery_set.h"
#include "lib/transfer/staged_copy.h"

namespace sealpoint::internal::transfer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(AffordableThreads, TheBudgetBoundsThem) {
  DeliveryPlan plan;
  EXPECT_EQ(AffordableThreads(plan, 8, 1), 8);  // nothing is needed
  plan.range_memory_max = 8 * kMiB;
  EXPECT_EQ(AffordableThreads(plan, 8, 64 * kMiB), 8);
  EXPECT_EQ(AffordableThreads(plan, 8, 63 * kMiB), 7);
  EXPECT_EQ(AffordableThreads(plan, 8, 1), 1);
  plan.decoded_size_max = 4 * kMiB;
  EXPECT_EQ(AffordableThreads(plan, 8, 64 * kMiB), 4);
}

std::pair<int, std::size_t> ThreadsAndWindows(std::size_t ranges, std::uint64_t decoded_size,
                                              int threads, std::uint64_t budget) {
  DeliveryPlan plan;
  plan.ranges.resize(ranges);
  plan.range_pages_max = 8 * kMiB;
  plan.decoded_size_max = decoded_size;
  const DeviceStaging staging = DeviceStaging::Divide(plan, threads, budget, false);
  return {staging.threads, staging.window_count};
}

TEST(DeviceStaging, ThreadsComeBeforeWindowsWithinTheBudget) {
  EXPECT_EQ(ThreadsAndWindows(100, 0, 1, 256 * kMiB), std::pair(1, std::size_t{3}));
  EXPECT_EQ(ThreadsAndWindows(100, 0, 8, 256 * kMiB), std::pair(8, std::size_t{3}));
  EXPECT_EQ(ThreadsAndWindows(100, 0, 8, 128 * kMiB), std::pair(8, std::size_t{2}));
  EXPECT_EQ(ThreadsAndWindows(100, 0, 8, 64 * kMiB), std::pair(8, std::size_t{1}));
  EXPECT_EQ(ThreadsAndWindows(100, 0, 8, 63 * kMiB), std::pair(4, std::size_t{1}));
  EXPECT_EQ(ThreadsAndWindows(100, 0, 8, 1), std::pair(1, std::size_t{1}));
  EXPECT_EQ(ThreadsAndWindows(2, 0, 8, 256 * kMiB), std::pair(2, std::size_t{2}));
  EXPECT_EQ(ThreadsAndWindows(100, 4 * kMiB, 8, 64 * kMiB), std::pair(4, std::size_t{1}));
}

TEST(CutCopy, PartsAreWithinTheBoundAndMakeTheWhole) {
  const layout::StridedCopy copy{.extent = {3, 5, 7},
                                 .source_stride_bytes = {1000, 100, 10},
                                 .target_stride_bytes = {2000, 200, 20},
                                 .element_size = 4};
  // The last cuts elements.
  for (const std::uint64_t bound : {4u, 9u, 28u, 60u, 141u, 10000u, 3u}) {
    std::uint64_t sum = 0;
    std::int64_t last = -1;
    for (const layout::StridedCopy& part : CutCopy(copy, 0, bound)) {
      EXPECT_LE(part.byte_count(), bound);
      EXPECT_GT(part.source_offset_bytes, last);
      last = part.source_offset_bytes;
      sum += part.byte_count();
    }
    EXPECT_EQ(sum, copy.byte_count()) << bound;
  }
}

// Where the chunks of 100 bytes of one range go: device and offset in one address space.
std::vector<std::uint64_t> RunSizes(const std::vector<std::pair<int, std::uint64_t>>& places) {
  DeliveryPlan plan;
  std::vector<std::byte> memory(1000);
  for (const auto& [device, offset] : places) {
    plan.chunks.push_back({.offset = 100 * plan.chunks.size(),
                           .stored_size = 100,
                           .raw_size = 100,
                           .first_copy = plan.copies.size(),
                           .copy_count = 1});
    plan.copies.emplace_back(layout::StridedCopy{.element_size = 100}, memory.data() + offset,
                             device);
  }
  std::vector<std::uint64_t> sizes;
  for (const DirectRun& run : DirectRunsOf(plan, {.chunk_count = places.size()})) {
    sizes.push_back(run.size_bytes);
  }
  return sizes;
}

TEST(DirectRunsOf, BreakWhereThePlaceDoes) {
  EXPECT_THAT(RunSizes({{0, 0}, {0, 100}, {0, 200}}), ElementsAre(300));
  EXPECT_THAT(RunSizes({{0, 0}, {0, 100}, {0, 300}}), ElementsAre(200, 100));
  EXPECT_THAT(RunSizes({{0, 100}, {0, 0}, {0, 100}}), ElementsAre(100, 200));
  EXPECT_THAT(RunSizes({{0, 0}, {1, 100}}), ElementsAre(100, 100));
  EXPECT_THAT(RunSizes({{0, 0}, {kHostDevice, 100}}), IsEmpty());
}

}  // namespace
}  // namespace sealpoint::internal::transfer
