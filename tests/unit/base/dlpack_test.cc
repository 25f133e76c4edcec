// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sealpoint/memory_view.h"

namespace sealpoint {
namespace {

TEST(DlpackDType, EachRegisteredDTypeHasOneOfItsSize) {
  for (const DTypeInfo& info : RegisteredDTypes()) {
    const auto dlpack = DlpackOf(info.dtype);
    ASSERT_TRUE(dlpack) << info.name;
    EXPECT_EQ(dlpack->bits * dlpack->lanes, info.size_bytes * 8) << info.name;
    EXPECT_EQ(DTypeOfDlpack(*dlpack), info.dtype) << info.name;
  }
}

TEST(DlpackDType, OthersHaveNone) {
  EXPECT_EQ(DlpackOf(DType::kNone), std::nullopt);
  EXPECT_EQ(DTypeOfDlpack({2, 128, 1}), std::nullopt);
  EXPECT_EQ(DTypeOfDlpack({2, 32, 4}), std::nullopt);
}

}  // namespace
}  // namespace sealpoint
