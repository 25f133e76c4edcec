// SPDX-License-Identifier: Apache-2.0
//
// Deleting and cleaning up: each storage operation fails. No checkpoint but the one to be removed
// is ever harmed, and the next try succeeds.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/series.h"
#include "tests/faults/fault_kinds.h"
#include "tests/faults/tiny_state.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr TinyState kOldState{.generation = 1};
constexpr TinyState kNewState{.generation = 2};

// Two checkpoints, one that is kept, and an attempt that was never committed.
struct SeriesJob {
  const std::shared_ptr<Storage> memory = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage = std::make_shared<FailingStorage>(memory);
  const Series series{"run", storage};
  const Series healthy{"run", memory};

  SeriesJob() {
    const auto engine = SmallEngine(memory);
    const ParentRef kept = SaveByHand(*engine, "run/kept", kOldState).value().as_parent();
    const Bytes empty;
    ReplaceFile(*memory, "run/kept", "KEEP", &empty);
    const CommitOptions next{.parent = kept};
    const ParentRef old = SaveByHand(*engine, "run/old", kOldState, next).value().as_parent();
    EXPECT_TRUE(SaveByHand(*engine, "run/new", kNewState, {.parent = old}).ok());
    EXPECT_TRUE(SaveByHand(*engine, "run/attempt", kOldState).ok());
    ReplaceFile(*memory, "run/attempt", "COMMIT", nullptr);
  }

  void ExpectTheOthersAreWhole() const {
    EXPECT_EQ(FindDifference(memory, "run/new", kNewState), "");
    EXPECT_EQ(FindDifference(memory, "run/kept", kOldState), "");
    EXPECT_EQ(healthy.Newest().value().entry.name, "new");
  }
};

void ExpectInjectedCause(const Status& status, const StorageFault& fault) {
  if (status.ok()) return;
  SCOPED_TRACE(status.ToString());
  EXPECT_THAT(status.place().path, Not(IsEmpty()));
  const Code code = fault.error.code();
  if (code != Code::kIo && code != Code::kNoSpace) return;  // a false answer: many outcomes
  EXPECT_THAT(status.message(), HasSubstr("injected"));
}

void Record(const std::string& row, const std::string& what, const FaultCounts& counts) {
  RecordRun({.row = row,
             .title = "Storage faults under " + what,
             .command = "ctest --test-dir build/dev -R fault.series",
             .counts = {{"operations", counts.operations}, {"faults injected", counts.faults}}});
}

bool IsThere(const SeriesJob& job, const std::string& path) {
  return job.memory->OpenDirectory(path).ok();
}

// It is whole, or no checkpoint any more; then clean-up takes it.
TEST(SeriesFaultsTest, EveryOperationOfADeletion) {
  // A marker whose removal is answered by "there is none" counts as gone.
  std::vector<StorageFault> faults = SaveFaults();
  std::erase_if(faults, [](const StorageFault& fault) {
    return fault.op == StorageOp::kRemove && fault.error.code() == Code::kNotFound;
  });
  const FaultCounts counts = ForEachPlace(faults, [](const StorageFault& fault) {
    const SeriesJob job;
    job.storage->Fail(fault);
    const Status status = job.series.Delete("old");
    job.storage->Heal();
    ExpectInjectedCause(status, fault);
    const auto opened = Checkpoint::Open("run/old", {.storage = job.memory});
    if (opened.ok()) {
      EXPECT_FALSE(status.ok() && fault.error.code() != Code::kNotFound);
      EXPECT_EQ(FindDifference(job.memory, "run/old", kOldState), "");
      EXPECT_TRUE(job.series.Delete("old").ok());
    } else {
      EXPECT_THAT(opened.error(), AnyOf(HasCode(Code::kNotFound), HasCode(Code::kUncommitted),
                                        HasCode(Code::kNotACheckpoint)));
    }
    job.ExpectTheOthersAreWhole();
    return job.storage->fault_count() > 0;
  });
  Record("fault-delete", "a deletion", counts);
}

// The newest and a kept one stay, whatever fails on the way to saying so.
TEST(SeriesFaultsTest, EveryOperationOfADeletionThatIsRefused) {
  FaultCounts sum;
  // A marker that ends early is a damaged one, and a damaged one may be deleted.
  std::vector<StorageFault> faults = SaveFaults();
  std::erase_if(faults, [](const StorageFault& f) { return f.error.code() == Code::kIncomplete; });
  for (const std::string name : {"new", "kept", "attempt"}) {
    const FaultCounts counts = ForEachPlace(faults, [&](const StorageFault& fault) {
      const SeriesJob job;
      job.storage->Fail(fault);
      EXPECT_FALSE(job.series.Delete(name).ok());
      job.storage->Heal();
      job.ExpectTheOthersAreWhole();
      EXPECT_EQ(FileNames(*job.memory, "run/attempt").size(), 3u);
      return job.storage->fault_count() > 0;
    });
    sum.operations += counts.operations;
    sum.faults += counts.faults;
  }
  Record("fault-delete-refused", "refused deletions", sum);
}

// First call: void marker, then the files. Second call: the rest. Each goes on where one stopped.
TEST(SeriesFaultsTest, EveryOperationOfACleanUp) {
  FaultCounts sum;
  for (const bool is_second : {false, true}) {
    const FaultCounts counts = ForEachPlace(SaveFaults(), [&](const StorageFault& fault) {
      const SeriesJob job;
      EXPECT_TRUE(!is_second || job.series.RemoveUncommitted("attempt").ok());
      job.storage->Fail(fault);
      const Status status = job.series.RemoveUncommitted("attempt").status();
      job.storage->Heal();
      ExpectInjectedCause(status, fault);
      EXPECT_FALSE(Checkpoint::Open("run/attempt", {.storage = job.memory}).ok());
      job.ExpectTheOthersAreWhole();
      EXPECT_EQ(FindDifference(job.memory, "run/old", kOldState), "");
      for (int call = 0; call < 3 && IsThere(job, "run/attempt"); ++call) {
        const Status again = job.series.RemoveUncommitted("attempt").status();
        // An empty directory with a foreign name belongs to somebody else.
        if (FileNames(*job.memory, "run/attempt").empty()) break;
        EXPECT_TRUE(again.ok()) << again.ToString();
      }
      EXPECT_THAT(FileNames(*job.memory, "run/attempt"), IsEmpty());
      return job.storage->fault_count() > 0;
    });
    sum.operations += counts.operations;
    sum.faults += counts.faults;
  }
  Record("fault-clean-up", "both calls of a clean-up", sum);
}

// A slow writer's marker is never replaced, and a committed one never cleaned up.
TEST(SeriesFaultsTest, EveryOperationOfACleanUpThatIsRefused) {
  ForEachPlace(SaveFaults(), [](const StorageFault& fault) {
    const SeriesJob job;
    job.storage->Fail(fault);
    EXPECT_FALSE(job.series.RemoveUncommitted("old").ok());
    job.storage->Heal();
    EXPECT_EQ(FindDifference(job.memory, "run/old", kOldState), "");
    job.ExpectTheOthersAreWhole();
    return job.storage->fault_count() > 0;
  });
}

}  // namespace
}  // namespace sealpoint::testing
