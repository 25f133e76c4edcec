// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/limits.h"

#include <gtest/gtest.h>

namespace sealpoint {
namespace {

TEST(RaisedLimits, AreSoManyTimesAsHigh) {
  const Limits usual;
  EXPECT_EQ(RaisedLimits(1), usual);
  const Limits raised = RaisedLimits(3);
  EXPECT_EQ(raised.tensor_count_max, 3 * usual.tensor_count_max);
  EXPECT_EQ(raised.box_list_shard_count_max, 3 * usual.box_list_shard_count_max);
  EXPECT_EQ(raised.blob_size_max_bytes, 3 * usual.blob_size_max_bytes);
}

TEST(RaisedLimits, StayWithin64Bits) {
  EXPECT_EQ(RaisedLimits(1'000'000).blob_size_max_bytes, ~std::uint64_t{0});
}

}  // namespace
}  // namespace sealpoint
