// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "lib/base/errors.h"

namespace sealpoint::internal {
namespace {

using ::testing::ElementsAre;

Status At(std::uint64_t offset, Code code = Code::kCorrupt) {
  return MakeError(code, "at ", offset).AtOffset(offset);
}

TEST(Findings, AreSortedByFileThenOffset) {
  Findings findings;
  findings.Add(BlobRank(1), At(5));
  findings.Add(BlobRank(0), At(9));
  findings.Add(kMarkerRank, At(40));
  findings.Add(BlobRank(0), At(2));
  bool omitted = true;
  EXPECT_THAT(findings.Take(&omitted), ElementsAre(At(40), At(2), At(9), At(5)));
  EXPECT_FALSE(omitted);
}

TEST(Findings, IdenticalOnesAreListedOnce) {
  Findings findings;
  for (int i = 0; i < 3; ++i) findings.Add(kIndexRank, At(1));
  bool omitted = true;
  EXPECT_EQ(findings.Take(&omitted).size(), 1u);
  EXPECT_FALSE(omitted);
}

TEST(Findings, KeepTheFirstWhereTheyAreTooMany) {
  Findings findings(2);
  for (std::uint64_t offset = 100; offset > 0; --offset) findings.Add(kIndexRank, At(offset));
  bool omitted = false;
  EXPECT_THAT(findings.Take(&omitted), ElementsAre(At(1), At(2)));
  EXPECT_TRUE(omitted);
}

TEST(Findings, VerdictFollowsFromAllOfThem) {
  Findings findings(1);
  EXPECT_EQ(findings.verdict(), Verdict::kCommitted);
  const std::pair<Code, Verdict> steps[] = {
      {Code::kUncommitted, Verdict::kUncommitted}, {Code::kUnsupported, Verdict::kUnsupported},
      {Code::kIo, Verdict::kUnreadable},           {Code::kIncomplete, Verdict::kIncomplete},
      {Code::kCorrupt, Verdict::kCorrupt},         {Code::kIo, Verdict::kCorrupt}};
  std::uint64_t offset = 0;
  for (const auto& [code, verdict] : steps) {
    findings.Add(kIndexRank, At(++offset, code));
    EXPECT_EQ(findings.verdict(), verdict);
  }
}

TEST(Findings, SuccessIsNone) {
  Findings findings;
  findings.Add(kIndexRank, {});
  bool omitted = true;
  EXPECT_TRUE(findings.Take(&omitted).empty());
}

}  // namespace
}  // namespace sealpoint::internal
