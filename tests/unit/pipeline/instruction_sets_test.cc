// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sealpoint/version.h"

namespace sealpoint {
namespace {

TEST(InstructionSets, AreThoseOfTheProcessor) {
#if defined(__aarch64__)
  EXPECT_EQ(InstructionSets(), "XXH3 by NEON, byte split by NEON");
#elif defined(__x86_64__)
  EXPECT_THAT(InstructionSets(), ::testing::ContainsRegex("^XXH3 by (SSE2|AVX)"));
#else
  EXPECT_THAT(InstructionSets(), ::testing::StartsWith("XXH3 by "));
#endif
}

}  // namespace
}  // namespace sealpoint
