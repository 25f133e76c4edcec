// SPDX-License-Identifier: Apache-2.0
//
// What is refused before a directory is made or a byte written.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/container/mini_container.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

void ExpectNoDirectoryMade(const SaveJob& job) {
  EXPECT_THAT(job.storage->changes(), Not(Contains("make directory")));
}

TEST(SavePreflight, WritesNoBlobBesideAMarker) {
  OnJobs([](SaveJob& job) {
    ASSERT_TRUE(job.Save(UsualDeclaration(job.comm)).ok());
    job.Barrier();
    job.storage->ClearLog();
    EXPECT_THAT(job.Save(UsualDeclaration(job.comm)).status(),
                FailsRule(Code::kAlreadyExists, "R-CMT-01"));
    EXPECT_THAT(job.storage->changes(), Not(Contains(HasSubstr(".blob"))));
  });
}

TEST(SavePreflight, RefusesAFileSystemThatCannotCommit) {
  OnJobs([](SaveJob& job) {
    if (job.rank() == 0) job.storage->Claim({.publish = PublishMethod::kLink});
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_THAT(status, FailsRule(Code::kUnsupported, "R-CMT-05"));
    job.ExpectSameOnAllRanks(status);
    EXPECT_THAT(FileNames(*job.posix, job.path("")), IsEmpty());
  });
}

// Whether it was there decides whether a failed save removes it.
TEST(SavePreflight, MakesNoDirectoryWhereItCannotLook) {
  OnJobs([](SaveJob& job) {
    if (job.rank() == 0) job.storage->Fail({.op = StorageOp::kOpenDirectory, .name = "ckpt"});
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_THAT(status, HasCode(Code::kIo));
    job.ExpectSameOnAllRanks(status);
    ExpectNoDirectoryMade(job);
  });
}

TEST(SavePreflight, MakesNoDirectoryForArgumentsOfTheRootThatAreWrong) {
  OnJobs([](SaveJob& job) {
    SaveOptions options;
    if (job.rank() == 0) options.provenance = {{"sealpoint.ranks", "0"}};
    const Status status =
        job.Save(UsualDeclaration(job.comm), SaveTarget::Directory(job.path("ckpt")), options)
            .status();
    EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-24"));
    ExpectNoDirectoryMade(job);
  });
}

TEST(SavePreflight, MakesNoDirectoryForAParentThatIsNone) {
  OnJobs([](SaveJob& job) {
    const SaveTarget target = SaveTarget::Directory(job.path("ckpt"), ParentRef{{}, 41});
    const Status status = job.Save(UsualDeclaration(job.comm), target).status();
    EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
    job.ExpectSameOnAllRanks(status);
    ExpectNoDirectoryMade(job);
  });
}

TEST(SavePreflight, TheRootReadsItsProbeBackToo) {
  OnJobs([](SaveJob& job) {
    if (job.rank() == 0) job.storage->Fail({.op = StorageOp::kOpenForRead, .name = ".shared"});
    const Status status = job.Save(UsualDeclaration(job.comm)).status();
    EXPECT_THAT(status, HasCode(Code::kIo));
    job.ExpectSameOnAllRanks(status);
    EXPECT_THAT(FileNames(*job.posix, job.path("")), IsEmpty());
  });
}

}  // namespace
}  // namespace sealpoint::testing
