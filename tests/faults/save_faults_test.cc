// SPDX-License-Identifier: Apache-2.0
//
// Blobs and commit of one process: each storage operation fails once, or from then on, in each way
// in which it can.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/faults/save_check.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

constexpr TinyState kOldState{.generation = 1};
constexpr TinyState kNewState{.generation = 2};

// An older checkpoint, and a storage that will fail under the next one.
struct HandJob {
  const std::shared_ptr<Storage> memory = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage = std::make_shared<FailingStorage>(memory);
  const std::unique_ptr<Engine> engine = SmallEngine(storage, 8, 4096);  // many writes
  const ParentRef old = SaveByHand(*engine, "run/old", kOldState).value().as_parent();

  Result<CommitInfo> Save(const std::string& name = "new") {
    return SaveByHand(*engine, "run/" + name, kNewState, {.step = 2, .parent = old});
  }
};

// Saves with `fault` armed, after another one that occurs in any case if `first` is given. Returns
// whether the fault occurred.
bool CheckOneSave(const std::optional<StorageFault>& first, const StorageFault& fault) {
  HandJob job;
  std::vector<StorageFault> faults{fault};
  if (first) faults.push_back(*first);
  for (const StorageFault& storage_fault : faults) job.storage->Fail(storage_fault);
  job.storage->ClearLog();
  const auto info = job.Save();
  EXPECT_EQ(FindUseAfterFailure(job.storage->calls()), "");
  const bool is_met = job.storage->fault_count() > (first ? 1u : 0u);
  EXPECT_TRUE(is_met || first || info.ok());
  job.storage->Heal();
  ExpectSoundOutcome(job.memory, "run/new", kNewState, info.status(), faults);
  EXPECT_EQ(FindDifference(job.memory, "run/old", kOldState), "");
  EXPECT_TRUE(job.Save("again").ok());
  EXPECT_EQ(FindDifference(job.memory, "run/again", kNewState), "");
  return is_met;
}

TEST(SaveFaultsTest, EveryOperationOfBlobsAndCommit) {
  const FaultCounts counts =
      ForEachPlace(SaveFaults(), [](const StorageFault& fault) { return CheckOneSave({}, fault); });
  RecordRun({.row = "fault-save-by-hand",
             .title = "Storage faults under blobs and commit of one process",
             .command = "ctest --test-dir build/dev -R fault.save",
             .counts = {{"operations", counts.operations}, {"faults injected", counts.faults}}});
}

// Only true errors: a storage that denies what is there can make anything look lost.
std::vector<StorageFault> HonestFaults() {
  std::vector<StorageFault> faults = SaveFaults();
  std::erase_if(faults, [](const StorageFault& fault) {
    return fault.error.code() != Code::kIo && fault.error.code() != Code::kNoSpace;
  });
  return faults;
}

// A second failure while the first one is handled.
TEST(SaveFaultsTest, EverySecondFaultBehindOneOfThePublication) {
  FaultCounts sum;
  for (const bool takes_effect : {false, true}) {
    const StorageFault first{.op = StorageOp::kPublish, .takes_effect = takes_effect};
    const FaultCounts counts = ForEachPlace(
        HonestFaults(), [&](const StorageFault& fault) { return CheckOneSave(first, fault); });
    sum.operations += counts.operations;
    sum.faults += counts.faults;
  }
  RecordRun({.row = "fault-save-twice",
             .title = "Second storage faults after a failed publication",
             .command = "ctest --test-dir build/dev -R fault.save",
             .counts = {{"operations", sum.operations}, {"faults injected", sum.faults}}});
}

TEST(SaveFaultsTest, FaultsInCleanUpChangeNoOutcome) {
  const StorageFault first{.name = ".index", .error = {Code::kNoSpace, "the first cause"}};
  const std::vector<StorageFault> removals = {
      {.op = StorageOp::kRemove},
      {.op = StorageOp::kRemove, .persists = true},
      {.op = StorageOp::kRemove, .takes_effect = true},
  };
  const FaultCounts counts = ForEachPlace(removals, [&](const StorageFault& fault) {
    HandJob job;
    job.storage->Fail(first);
    job.storage->Fail(fault);
    const Status status = job.Save().status();
    EXPECT_THAT(status, HasCode(Code::kNoSpace));
    EXPECT_EQ(status.message(), "the first cause");
    EXPECT_THAT(Checkpoint::Open("run/new", {.storage = job.memory}).status(),
                ::testing::AnyOf(HasCode(Code::kUncommitted), HasCode(Code::kNotACheckpoint)));
    return job.storage->fault_count() > 1;
  });
  EXPECT_EQ(counts.operations, 3u) << "the index and two blobs";
}

// A disk that is full after so many bytes, for each number at which anything changes and for many
// between.
TEST(SaveFaultsTest, FullAtAnyByte) {
  std::uint64_t runs = 0;
  bool is_ok = false;
  for (std::uint64_t limit = 0; !is_ok && !HasFailure(); limit += 251, ++runs) {
    SCOPED_TRACE(limit);
    HandJob job;
    job.storage->LimitBytes(limit);
    const auto info = job.Save();
    is_ok = info.ok();
    job.storage->Heal();
    const StorageFault full{.error = {Code::kNoSpace, "injected: full"}};
    ExpectSoundOutcome(job.memory, "run/new", kNewState, info.status(), {full});
    EXPECT_EQ(FindDifference(job.memory, "run/old", kOldState), "");
    if (is_ok) continue;
    EXPECT_THAT(info.status(), HasCode(Code::kNoSpace));
    EXPECT_TRUE(job.Save("again").ok());
  }
  EXPECT_GT(runs, 50u);
}

}  // namespace
}  // namespace sealpoint::testing
