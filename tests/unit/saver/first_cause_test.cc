// SPDX-License-Identifier: Apache-2.0
//
// The communicator fails on rank 0, which gives up and removes the directory while rank 1 is still
// on its way into it. What rank 1 then misses is a consequence.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>

#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::AnyOf;
using ::testing::IsEmpty;

// The communicator of rank 0 fails once this operation of rank 0 begins, and `is_due`.
struct BreakAt {
  StorageOp op;
  std::string_view name;
  std::function<bool()> is_due{[] { return true; }};
};

void WaitFor(const std::function<bool()>& is_over) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_over() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// `at_rank_1` is called before each operation of rank 1; `expect` takes the error of rank 1.
template <typename Hook, typename Expect>
void SaveWhileRank0GivesUp(const BreakAt& where, const Hook& at_rank_1, const Expect& expect) {
  WithRanks(2, [&](Communicator& comm) {
    SaveJob job(comm);
    job.storage->SetHook([&](StorageOp op, std::string_view name) {
      if (job.is_last()) return at_rank_1(job, op, name);
      if (op != where.op || name.find(where.name) == name.npos) return;
      WaitFor(where.is_due);
      job.comm.Break();
    });
    const Status status = job.Save(UsualDeclaration(comm)).status();
    if (!job.is_last()) {
      EXPECT_THAT(status, HasCode(Code::kTimeout));
    } else {
      expect(status);
    }
    job.storage->Heal();
  });
}

// Before rank 1 opens the directory for the n-th time, waits until it is gone.
auto OpensTooLate(int nth) {
  return
      [nth, opens = std::make_shared<int>(0)](SaveJob& job, StorageOp op, std::string_view name) {
        if (op != StorageOp::kOpenDirectory || name != job.path("ckpt") || ++*opens != nth) return;
        const auto is_gone = [&] { return !job.posix->OpenDirectory(job.path("ckpt")).ok(); };
        WaitFor(is_gone);
        EXPECT_TRUE(is_gone());
      };
}

void ExpectCommFailure(const Status& status) {
  EXPECT_THAT(status, AnyOf(HasCode(Code::kComm), HasCode(Code::kTimeout)));
  EXPECT_FALSE(OutcomeIsUnknown(status));
}

TEST(FirstCauseTest, ADirectoryThatRank0RemovedIsNotAnotherFileSystem) {
  SaveWhileRank0GivesUp({StorageOp::kOpenForRead, ".shared"}, OpensTooLate(1), ExpectCommFailure);
}

TEST(FirstCauseTest, ADirectoryThatRank0RemovedIsNotMissingForABlob) {
  SaveWhileRank0GivesUp({StorageOp::kCreate, ".blob"}, OpensTooLate(2), ExpectCommFailure);
}

TEST(FirstCauseTest, AnErrorOfTheDiskStaysTheCause) {
  std::atomic<bool> is_on_disk = false;  // rank 1, in the directory that rank 0 will remove
  const auto at_rank_1 = [&](SaveJob& job, StorageOp op, std::string_view name) {
    if (op == StorageOp::kOpenDirectory) {
      job.storage->Fail(
          {.op = StorageOp::kCreate, .name = ".blob", .error = Status(Code::kNoSpace, "full")});
    }
    if (op == StorageOp::kCreate && name.find(".blob") != name.npos) {
      job.comm.Break();
      is_on_disk = true;
    }
  };
  SaveWhileRank0GivesUp({StorageOp::kCreate, ".blob", [&] { return is_on_disk.load(); }}, at_rank_1,
                        [](const Status& status) { EXPECT_THAT(status, HasCode(Code::kNoSpace)); });
}

// The others may have got what rank 0 sent, and look at what is removed here; as above.
TEST(FirstCauseTest, NothingIsLeftIfTheAttemptCannotBeAnnounced) {
  WithRanks(1, [&](Communicator& comm) {
    SaveJob job(comm);
    job.comm.BreakAfterBroadcast(1);
    EXPECT_THAT(job.Save(UsualDeclaration(comm), "a/b").status(), HasCode(Code::kTimeout));
    EXPECT_THAT(FileNames(*job.posix, job.path("")), IsEmpty());
  });
}

}  // namespace
}  // namespace sealpoint::testing
