// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"

namespace sealpoint::internal::verify {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::SizeIs;

Status At(std::uint64_t offset, Code code = Code::kCorrupt) {
  return MakeError(code, "at ", offset).AtOffset(offset);
}

VerifyReport Report(Findings& findings) {
  VerifyReport report{.path = "ckpt"};
  findings.MoveTo(report);
  return report;
}

OmittedViolations Omitted(std::string path, std::uint64_t count) {
  return {.path = std::move(path), .count = count};
}

TEST(Findings, AreSortedByFileThenOffset) {
  Findings findings;
  findings.Add(BlobRank(1), At(5));
  findings.Add(BlobRank(0), At(9));
  findings.Add(kMarkerRank, At(40));
  findings.Add(BlobRank(0), At(2));
  const VerifyReport report = Report(findings);
  EXPECT_THAT(report.violations, ElementsAre(At(40), At(2), At(9), At(5)));
  EXPECT_THAT(report.omitted, IsEmpty());
  EXPECT_EQ(report.violation_count, 4u);
  EXPECT_EQ(report.verdict, Verdict::kCorrupt);
}

TEST(Findings, IdenticalOnesAreListedAndCountedOnce) {
  Findings findings;
  for (int i = 0; i < 3; ++i) findings.Add(kIndexRank, At(1));
  const VerifyReport report = Report(findings);
  EXPECT_THAT(report.violations, ElementsAre(At(1)));
  EXPECT_EQ(report.violation_count, 1u);
}

TEST(Findings, ListTheFirstOfEachFileAndCountTheOthers) {
  Findings findings({.per_file_max = 2});
  for (std::uint64_t offset = 100; offset > 0; --offset) {
    findings.Add(BlobRank(offset % 2), At(offset).AtPath(offset % 2 == 0 ? "even" : "odd"));
  }
  findings.Add(BlobRank(2), At(7));
  const VerifyReport report = Report(findings);
  EXPECT_THAT(report.violations, ElementsAre(At(2).AtPath("even"), At(4).AtPath("even"),
                                             At(1).AtPath("odd"), At(3).AtPath("odd"), At(7)));
  EXPECT_THAT(report.omitted, ElementsAre(Omitted("even", 48), Omitted("odd", 48)));
  EXPECT_EQ(report.violation_count, 101u);
}

TEST(Findings, ListTheFirstThatTheMemoryHolds) {
  Findings findings({.listed_bytes_max = 2000});
  for (std::uint64_t offset = 10'000; offset > 0; --offset) findings.Add(kIndexRank, At(offset));
  const VerifyReport report = Report(findings);
  ASSERT_THAT(report.violations, SizeIs(AllOf(Ge(2u), Le(20u))));
  for (std::size_t i = 0; i < report.violations.size(); ++i) {
    EXPECT_EQ(report.violations[i], At(i + 1));
  }
  EXPECT_THAT(report.omitted, ElementsAre(Omitted("", 10'000 - report.violations.size())));
  EXPECT_EQ(report.violation_count, 10'000u);
}

TEST(Findings, NameTheFirstFilesOfWhichSomethingIsOmitted) {
  Findings findings({.per_file_max = 0, .omitted_files_max = 2});
  for (std::size_t blob = 50; blob-- > 0;) {
    const std::string path = std::to_string(blob);
    findings.Add(BlobRank(blob), At(1).AtPath(path));
    findings.Add(BlobRank(blob), At(2).AtPath(path));
  }
  const VerifyReport report = Report(findings);
  EXPECT_THAT(report.violations, IsEmpty());
  EXPECT_THAT(report.omitted, ElementsAre(Omitted("0", 2), Omitted("1", 2), Omitted("ckpt", 96)));
}

TEST(Findings, TellOfEachAsItIsFound) {
  std::vector<Status> found;
  Findings findings({.per_file_max = 1}, [&](const Status& one) { found.push_back(one); });
  findings.Add(kIndexRank, At(5));
  findings.Add(kIndexRank, {});
  findings.Add(kIndexRank, At(3));
  EXPECT_THAT(found, ElementsAre(At(5), At(3)));
}

TEST(Findings, VerdictFollowsFromAllOfThem) {
  Findings findings({.per_file_max = 1});
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
  EXPECT_EQ(Report(findings).violation_count, 0u);
}

}  // namespace
}  // namespace sealpoint::internal::verify
