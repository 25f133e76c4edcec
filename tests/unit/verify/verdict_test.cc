// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sealpoint/verify.h"

namespace sealpoint {
namespace {

TEST(Verdict, FollowsFromTheCode) {
  EXPECT_EQ(VerdictOf({}), Verdict::kCommitted);
  EXPECT_EQ(VerdictOf(Status(Code::kUncommitted, "")), Verdict::kUncommitted);
  EXPECT_EQ(VerdictOf(Status(Code::kIncomplete, "")), Verdict::kIncomplete);
  EXPECT_EQ(VerdictOf(Status(Code::kCorrupt, "")), Verdict::kCorrupt);
  EXPECT_EQ(VerdictOf(Status(Code::kUnsupported, "")), Verdict::kUnsupported);
  EXPECT_EQ(VerdictOf(Status(Code::kLimitExceeded, "")), Verdict::kUnsupported);
  EXPECT_EQ(VerdictOf(Status(Code::kNotACheckpoint, "")), Verdict::kUnreadable);
  EXPECT_EQ(VerdictOf(Status(Code::kNotFound, "")), Verdict::kUnreadable);
  EXPECT_EQ(VerdictOf(Status(Code::kIo, "")), Verdict::kUnreadable);
}

TEST(Verdict, NamesAreThoseOfTheDocumentation) {
  EXPECT_EQ(VerdictName(Verdict::kCommitted), "committed");
  EXPECT_EQ(VerdictName(Verdict::kUncommitted), "uncommitted");
  EXPECT_EQ(VerdictName(Verdict::kIncomplete), "incomplete");
  EXPECT_EQ(VerdictName(Verdict::kCorrupt), "corrupt");
  EXPECT_EQ(VerdictName(Verdict::kUnsupported), "unsupported");
  EXPECT_EQ(VerdictName(Verdict::kUnreadable), "unreadable");
  EXPECT_EQ(VerifyLevelName(VerifyLevel::kFiles), "files");
  EXPECT_EQ(VerifyLevelName(VerifyLevel::kStructure), "structure");
  EXPECT_EQ(VerifyLevelName(VerifyLevel::kFull), "full");
}

}  // namespace
}  // namespace sealpoint
