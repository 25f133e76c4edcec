// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/status.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

namespace sealpoint {
namespace {

Status Corrupt() { return Status(Code::kCorrupt, "digest differs"); }

TEST(Status, IsPrintedAsTextByTests) {
  EXPECT_EQ(::testing::PrintToString(Status(Code::kIo, "gone")), "Io: gone");
}

TEST(CodeName, NamesEveryCode) {
  constexpr std::string_view kNames[] = {"Ok",
                                         "InvalidArgument",
                                         "NotFound",
                                         "AlreadyExists",
                                         "NotACheckpoint",
                                         "Uncommitted",
                                         "Incomplete",
                                         "Corrupt",
                                         "Unsupported",
                                         "LimitExceeded",
                                         "Mismatch",
                                         "Io",
                                         "NoSpace",
                                         "Device",
                                         "Comm",
                                         "Timeout",
                                         "Cancelled",
                                         "Internal"};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    EXPECT_EQ(CodeName(static_cast<Code>(i)), kNames[i]);
  }
  EXPECT_EQ(CodeName(static_cast<Code>(std::size(kNames))), "Unknown");
}

TEST(Status, IsOkByDefault) {
  EXPECT_TRUE(Status().ok());
  EXPECT_EQ(Status().ToString(), "Ok");
}

TEST(Status, PrintsTheMessageAloneWithoutAPlace) {
  EXPECT_EQ(Corrupt().ToString(), "Corrupt: digest differs");
}

TEST(Status, OnlyAnErrorHasAnUnknownOutcome) {
  EXPECT_FALSE(Corrupt().has_unknown_outcome());
  EXPECT_TRUE(Corrupt().WithUnknownOutcome().has_unknown_outcome());
  EXPECT_FALSE(Status().WithUnknownOutcome().has_unknown_outcome());
}

TEST(Status, PrintsAllPartsOfThePlaceInOrder) {
  const Status status = Corrupt()
                            .AtRank(7, "node3")
                            .AtOffset(40)
                            .AtPath("ckpt/COMMIT")
                            .AtTensor("layers.0.w")
                            .AtRule("R-HDR-05");
  EXPECT_EQ(status.ToString(),
            "Corrupt: digest differs [rule R-HDR-05, tensor layers.0.w, file ckpt/COMMIT, "
            "offset 40, rank 7, host node3]");
}

TEST(Status, PrintsOffsetAndRankZero) {
  EXPECT_EQ(Corrupt().AtOffset(0).AtRank(0, "").ToString(),
            "Corrupt: digest differs [offset 0, rank 0]");
}

TEST(Status, KeepsTheInnermostRule) {
  EXPECT_EQ(Corrupt().AtRule("inner").AtRule("outer").place().rule, "inner");
}

TEST(Status, KeepsTheInnermostPath) {
  EXPECT_EQ(Corrupt().AtPath("inner").AtPath("outer").place().path, "inner");
}

TEST(Status, KeepsTheInnermostOffsetEvenZero) {
  EXPECT_EQ(Corrupt().AtOffset(0).AtOffset(9).place().offset, 0u);
}

TEST(Status, KeepsTheInnermostTensor) {
  EXPECT_EQ(Corrupt().AtTensor("inner").AtTensor("outer").place().tensor, "inner");
}

TEST(Status, IsAboutATensorOrAnObject) {
  EXPECT_EQ(Corrupt().AtObject("rng").ToString(), "Corrupt: digest differs [object rng]");
  EXPECT_EQ(Corrupt().AtObject("inner").AtObject("outer").place().object, "inner");
  EXPECT_EQ(Corrupt().AtObject("rng").AtTensor("w").place().tensor, "");
  EXPECT_EQ(Corrupt().AtTensor("w").AtObject("rng").place().object, "");
}

TEST(Status, KeepsTheInnermostRankTogetherWithItsHost) {
  const Status status = Corrupt().AtRank(3, "").AtRank(4, "node4");
  EXPECT_EQ(status.place().rank, 3);
  EXPECT_EQ(status.place().host, "");
}

TEST(Status, AddsNoPlaceToSuccess) {
  const Status status =
      Status().AtRule("r").AtPath("p").AtOffset(1).AtTensor("t").AtObject("o").AtRank(1, "h");
  EXPECT_EQ(status, Status());
}

TEST(Status, IsOneLineThatCannotWriteToATerminal) {
  const Status status =
      Status(Code::kCorrupt, "first\nsecond").AtPath("a\x1b[2J\xff").AtTensor("w\u202ev");
  EXPECT_EQ(status.ToString(),
            "Corrupt: first\\x0asecond [tensor w\\u{202e}v, file a\\x1b[2J\\xff]");
  EXPECT_EQ(status.message(), "first\nsecond");
}

TEST(Status, PrefixesErrorsButNotSuccess) {
  EXPECT_EQ(Corrupt().Prefixed("blob 2").message(), "blob 2: digest differs");
  EXPECT_EQ(Status().Prefixed("blob 2"), Status());
}

TEST(Result, HoldsAValue) {
  Result<std::string> result(std::string("abc"));
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(static_cast<bool>(result));
  EXPECT_EQ(*result, "abc");
  EXPECT_EQ(result->size(), 3u);
  EXPECT_TRUE(result.status().ok());
  EXPECT_TRUE(result.error().ok());
}

TEST(Result, HoldsAnError) {
  const Result<int> result = Corrupt();
  EXPECT_FALSE(result.has_value());
  EXPECT_EQ(result.error(), Corrupt());
  EXPECT_EQ(result.status(), Corrupt());
}

TEST(Result, MovesOutAValueThatCannotBeCopied) {
  Result<std::unique_ptr<int>> result(std::make_unique<int>(5));
  const std::unique_ptr<int> value = std::move(result).value();
  EXPECT_EQ(*value, 5);
}

TEST(Result, FallsBackOnlyOnError) {
  EXPECT_EQ(Result<int>(3).value_or(9), 3);
  EXPECT_EQ(Result<int>(Corrupt()).value_or(9), 9);
}

TEST(ResultDeathTest, AbortsWhereTheValueOfAnErrorIsTaken) {
  Result<int> result = Corrupt();
  EXPECT_DEATH(static_cast<void>(result.value()), "failed Result: Corrupt: digest differs");
  EXPECT_DEATH(static_cast<void>(*result), "failed Result: Corrupt: digest differs");
}

TEST(ResultDeathTest, RefusesASuccessAsError) {
  EXPECT_DEATH(static_cast<void>(Result<int>(Status())), "failed Result: Ok");
}

}  // namespace
}  // namespace sealpoint
