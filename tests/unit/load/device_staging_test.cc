// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "lib/transfer/device_delivery.h"
#include "lib/transfer/staged_copy.h"
#include "sealpoint/bytes.h"

namespace sealpoint::testing {
namespace {

using internal::CutCopy;
using internal::DeviceStaging;
using internal::DeliveryPlan;
using internal::StageCopy;
using internal::StridedCopy;

DeliveryPlan PlanOf(std::size_t ranges, std::uint64_t pages) {
  DeliveryPlan plan;
  plan.ranges.resize(ranges);
  plan.range_pages_max = pages;
  return plan;
}

TEST(DeviceStagingTest, ThreadsComeBeforeWindowsWithinTheBudget) {
  const DeliveryPlan plan = PlanOf(100, 8 * kMiB);
  const auto divide = [&](int threads, std::uint64_t budget) {
    const DeviceStaging staging = DeviceStaging::Divide(plan, threads, budget, false);
    return std::pair(staging.threads, staging.window_count);
  };
  EXPECT_EQ(divide(1, 256 * kMiB), std::pair(1, std::size_t{3}));
  EXPECT_EQ(divide(8, 256 * kMiB), std::pair(8, std::size_t{3}));
  EXPECT_EQ(divide(8, 128 * kMiB), std::pair(8, std::size_t{2}));
  EXPECT_EQ(divide(8, 64 * kMiB), std::pair(8, std::size_t{1}));
  EXPECT_EQ(divide(8, 63 * kMiB), std::pair(4, std::size_t{1}));
  EXPECT_EQ(divide(8, 1), std::pair(1, std::size_t{1}));
}

TEST(DeviceStagingTest, NoMoreThanThereAreRanges) {
  const DeviceStaging staging = DeviceStaging::Divide(PlanOf(2, 64 * kKiB), 8, 256 * kMiB, false);
  EXPECT_EQ(staging.threads, 2);
  EXPECT_EQ(staging.window_count, 2u);
  EXPECT_EQ(DeviceStaging::Divide(PlanOf(1, 64 * kKiB), 8, 256 * kMiB, false).window_count, 1u);
}

TEST(DeviceStagingTest, DecodedChunksCount) {
  DeliveryPlan plan = PlanOf(100, 8 * kMiB);
  plan.decoded_size_max = 4 * kMiB;
  const DeviceStaging staging = DeviceStaging::Divide(plan, 8, 64 * kMiB, false);
  EXPECT_EQ(staging.threads, 4);
  EXPECT_EQ(staging.window_count, 1u);
}

// A transposed copy is packed so that what is dense in the target is dense in staging.
TEST(StageCopyTest, PutsTheBytesInTheOrderOfTheTarget) {
  const StridedCopy copy{.extent = {4, 8},
                         .source_stride_bytes = {32, 4},
                         .target_stride_bytes = {4, -16},
                         .element_size = 4,
                         .source_offset_bytes = 100,
                         .target_offset_bytes = 112};
  const internal::StagedCopy staged = StageCopy(copy, 4);
  EXPECT_TRUE(staged.place.is_contiguous());
  EXPECT_EQ(staged.place.element_size, 128u);
  EXPECT_EQ(staged.place.target_offset_bytes, 0);
  EXPECT_EQ(staged.pack.target_stride_bytes, (std::vector<std::int64_t>{4, -16}));
  EXPECT_EQ(staged.pack.target_offset_bytes, 112);
  EXPECT_EQ(staged.pack.source_offset_bytes, 100);
}

TEST(CutCopyTest, PartsAreWithinTheBoundAndMakeTheWhole) {
  const StridedCopy copy{.extent = {3, 5, 7},
                         .source_stride_bytes = {1000, 100, 10},
                         .target_stride_bytes = {2000, 200, 20},
                         .element_size = 4};
  for (const std::uint64_t bound : {4u, 9u, 28u, 60u, 141u, 10000u}) {
    std::uint64_t sum = 0;
    std::int64_t last = -1;
    for (const StridedCopy& part : CutCopy(copy, 0, bound)) {
      EXPECT_LE(part.byte_count(), bound);
      EXPECT_GT(part.source_offset_bytes, last);
      EXPECT_EQ(part.target_offset_bytes, 2 * part.source_offset_bytes);
      last = part.source_offset_bytes;
      sum += part.byte_count();
    }
    EXPECT_EQ(sum, copy.byte_count()) << bound;
  }
}

TEST(CutCopyTest, CutsALongRowAnywhere) {
  const StridedCopy row{.extent = {},
                        .source_stride_bytes = {},
                        .target_stride_bytes = {},
                        .element_size = 1000,
                        .source_offset_bytes = 5,
                        .target_offset_bytes = 7};
  const auto parts = CutCopy(row, 0, 300);
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[3].byte_count(), 100u);
  EXPECT_EQ(parts[3].source_offset_bytes, 905);
  EXPECT_EQ(parts[3].target_offset_bytes, 907);
}

}  // namespace
}  // namespace sealpoint::testing
