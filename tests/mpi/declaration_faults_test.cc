// SPDX-License-Identifier: Apache-2.0
//
// What is wrong with declarations is told with the rank that caused it, never with the one that
// found it, and with the number of the other names.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

// Ten tensors of which each rank holds a slice; `change` makes the last rank's another.
Declaration TenTensors(const SaveJob& job, const std::function<void(DeclaredTensor&)>& change) {
  const auto rank = static_cast<std::uint64_t>(job.rank());
  Declaration declaration;
  for (int i = 0; i < 10; ++i) {
    DeclaredTensor held{
        .tensor = ByteTensor("t" + std::to_string(i), static_cast<std::uint64_t>(job.size()) * 10),
        .region = Slice(rank * 10, rank * 10 + 10)};
    if (job.is_last()) change(held);
    declaration.Add(std::move(held)).value();
  }
  return declaration;
}

TEST(DeclarationFaults, OfAllNamesAreCountedAndAHoleIsNoRanksFault) {
  OnJobs(
      [](SaveJob& job) {
        const auto end = static_cast<std::uint64_t>(job.size()) * 10;
        const Status status =
            job.Save(TenTensors(job,
                                [&](DeclaredTensor& held) { held.region = Slice(end - 9, end); }))
                .status();
        EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-19"));
        EXPECT_THAT(status.message(),
                    HasSubstr("no rank holds element [" + std::to_string(end - 10) + "]"));
        EXPECT_THAT(status.message(), HasSubstr("regions of the tensor are held by ranks 0, 1"));
        EXPECT_THAT(status.message(), HasSubstr("; and 9 more names are at fault"));
        EXPECT_EQ(status.place().tensor, "t0");
        EXPECT_FALSE(status.place().rank.has_value());
        job.ExpectSameOnAllRanks(status);
      },
      2);
}

TEST(DeclarationFaults, NameTheRankWhoseDeclarationIsAnother) {
  OnJobs(
      [](SaveJob& job) {
        const Status status = job.Save(TenTensors(job,
                                                  [](DeclaredTensor& held) {
                                                    if (held.tensor.name > "t7")
                                                      held.tensor.dtype = DType::kInt8;
                                                  }))
                                  .status();
        EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-18"));
        EXPECT_THAT(status.message(), HasSubstr("; and 1 more name is at fault"));
        EXPECT_EQ(status.place().tensor, "t8");
        EXPECT_EQ(status.place().rank, job.size() - 1);
        job.ExpectSameOnAllRanks(status);
      },
      2);
}

}  // namespace
}  // namespace sealpoint::testing
