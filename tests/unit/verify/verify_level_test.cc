// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sealpoint/verify.h"

namespace sealpoint {
namespace {

TEST(VerifyLevel, NamesAreThoseOfTheCommandLine) {
  EXPECT_EQ(VerifyLevelName(VerifyLevel::kFiles), "files");
  EXPECT_EQ(VerifyLevelName(VerifyLevel::kStructure), "structure");
  EXPECT_EQ(VerifyLevelName(VerifyLevel::kFull), "full");
}

}  // namespace
}  // namespace sealpoint
