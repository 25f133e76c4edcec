// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sealpoint/status.h"

namespace sealpoint {
namespace {

TEST(VerdictTest, FollowsFromTheCode) {
  const auto of = [](Code code) { return VerdictOf(Status(code, "why")); };
  EXPECT_EQ(VerdictOf(Status()), Verdict::kCommitted);
  EXPECT_EQ(of(Code::kUncommitted), Verdict::kUncommitted);
  EXPECT_EQ(of(Code::kIncomplete), Verdict::kIncomplete);
  EXPECT_EQ(of(Code::kCorrupt), Verdict::kCorrupt);
  EXPECT_EQ(of(Code::kUnsupported), Verdict::kUnsupported);
  EXPECT_EQ(of(Code::kLimitExceeded), Verdict::kUnsupported);
  EXPECT_EQ(of(Code::kNotACheckpoint), Verdict::kUnreadable);
  EXPECT_EQ(of(Code::kNotFound), Verdict::kUnreadable);
  EXPECT_EQ(of(Code::kIo), Verdict::kUnreadable);
}

TEST(VerdictTest, HasTheWordsOfTheDocumentation) {
  EXPECT_EQ(VerdictName(Verdict::kCommitted), "committed");
  EXPECT_EQ(VerdictName(Verdict::kUncommitted), "uncommitted");
  EXPECT_EQ(VerdictName(Verdict::kIncomplete), "incomplete");
  EXPECT_EQ(VerdictName(Verdict::kCorrupt), "corrupt");
  EXPECT_EQ(VerdictName(Verdict::kUnsupported), "unsupported");
  EXPECT_EQ(VerdictName(Verdict::kUnreadable), "unreadable");
}

}  // namespace
}  // namespace sealpoint
