// SPDX-License-Identifier: Apache-2.0
#include "lib/base/errors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <limits>
#include <string>

#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

TEST(StrCat, JoinsTextAndNumbers) {
  const std::string name = "w";
  EXPECT_EQ(StrCat("shard ", 3, " of ", name, std::string_view("!")), "shard 3 of w!");
}

TEST(StrCat, EndsACharArrayAtItsTerminator) {
  const char text[8] = "abc";
  EXPECT_EQ(StrCat(text, "d"), "abcd");
}

TEST(StrCat, PrintsNarrowIntegersAsNumbers) {
  EXPECT_EQ(StrCat(std::uint8_t{65}, " ", std::int8_t{-1}), "65 -1");
}

TEST(StrCat, PrintsTheExtremes) {
  EXPECT_EQ(StrCat(std::numeric_limits<std::uint64_t>::max()), "18446744073709551615");
  EXPECT_EQ(StrCat(std::numeric_limits<std::int64_t>::min()), "-9223372036854775808");
}

TEST(StrCat, IsEmptyWithoutPieces) { EXPECT_EQ(StrCat(), ""); }

TEST(InvalidArgument, HasTheCodeAndTheJoinedMessage) {
  EXPECT_EQ(InvalidArgument("dim ", 2), Status(Code::kInvalidArgument, "dim 2"));
}

TEST(RuleError, CarriesTheRule) {
  const Status status = RuleError(Code::kCorrupt, "R-HDR-03", "length ", 7);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.message(), "length 7");
  EXPECT_EQ(status.place().rule, "R-HDR-03");
}

TEST(ErrnoError, TellsFullStorageFromOtherErrors) {
  EXPECT_EQ(ErrnoError("write", ENOSPC).code(), Code::kNoSpace);
  EXPECT_EQ(ErrnoError("write", EDQUOT).code(), Code::kNoSpace);
  EXPECT_EQ(ErrnoError("write", EIO).code(), Code::kIo);
}

TEST(ErrnoError, TellsMissingAndPresentFiles) {
  EXPECT_EQ(ErrnoError("open", ENOENT).code(), Code::kNotFound);
  EXPECT_EQ(ErrnoError("open", EEXIST).code(), Code::kAlreadyExists);
  EXPECT_EQ(ErrnoError("open", EACCES).code(), Code::kIo);
}

TEST(ErrnoError, TellsTheLackOfFilesFromOtherErrors) {
  EXPECT_TRUE(ErrnoError("open", EMFILE).is_out_of_files());
  EXPECT_TRUE(ErrnoError("open", ENFILE).is_out_of_files());
  EXPECT_FALSE(ErrnoError("open", EACCES).is_out_of_files());
}

TEST(ErrnoError, NamesTheOperationAndTheErrno) {
  EXPECT_THAT(ErrnoError("fsync", EIO).message(),
              testing::AllOf(testing::StartsWith("fsync: "), testing::EndsWith("(errno 5)"),
                             testing::HasSubstr("Input/output error")));
}

TEST(DigestError, HasTheComputedAndTheRecordedDigest) {
  Digest computed;
  computed.bytes[0] = std::byte{0xab};
  const Status status = DigestError("R-HDR-04", "header", computed, Digest());
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.place().rule, "R-HDR-04");
  EXPECT_EQ(status.message(),
            "header digest mismatch: computed ab000000000000000000000000000000, "
            "recorded 00000000000000000000000000000000");
}

TEST(StoredDigestError, HasTheFoundAndTheRecordedDigest) {
  Digest found;
  found.bytes[15] = std::byte{0xcd};
  const Status status = StoredDigestError("R-BLB-03", "trailer", found, Digest());
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_EQ(status.place().rule, "R-BLB-03");
  EXPECT_EQ(status.message(),
            "trailer digest mismatch: found 000000000000000000000000000000cd, "
            "recorded 00000000000000000000000000000000");
}

Status FailIf(bool fails) { return fails ? InvalidArgument("inner") : Status(); }
Status Outer(bool fails) {
  SEALPOINT_RETURN_IF_ERROR(FailIf(fails));
  return Status(Code::kNotFound, "behind");
}

TEST(ReturnIfError, ReturnsTheErrorAndElseGoesOn) {
  EXPECT_EQ(Outer(true).message(), "inner");
  EXPECT_EQ(Outer(false).message(), "behind");
}

Result<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument(value, " is odd");
  return value / 2;
}
Result<int> Quarter(int value) {
  SEALPOINT_ASSIGN_OR_RETURN(const int half, Half(value));
  SEALPOINT_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(AssignOrReturn, AssignsTheValueOrReturnsTheError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(6).error().message(), "3 is odd");
}

TEST(CheckDeathTest, AbortsWithTheConditionAndItsPlace) {
  EXPECT_DEATH(SEALPOINT_CHECK(1 + 1 == 3), "check failed: 1 \\+ 1 == 3 .*errors_test");
}

}  // namespace
}  // namespace sealpoint::internal
