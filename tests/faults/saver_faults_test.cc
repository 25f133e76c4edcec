// SPDX-License-Identifier: Apache-2.0
//
// Collective saves into a series: each storage operation of each rank fails.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/series.h"
#include "tests/faults/save_check.h"
#include "tests/support/process/results.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_in_mode.h"

namespace sealpoint::testing {
namespace {

using Saved = std::vector<Result<CommitInfo>>;  // by rank

// The outcomes of three saves of one job: before the fault, with it, and after it.
struct JobOutcome {
  std::shared_ptr<Storage> memory = MemoryStorage();
  Saved before{};
  Saved under{};
  Saved after{};
  bool is_met = false;
  std::string use_after_failure{};
};

TinyState StateOf(int size, std::uint64_t step) { return {.rank_count = size, .generation = step}; }

// One rank of the job; `fault` is null on those without one.
void RunRank(Communicator& comm, const StorageFault* fault, JobOutcome& outcome) {
  const auto storage = std::make_shared<FailingStorage>(outcome.memory);
  const auto engine = SmallEngine(storage, BufferCountForSaves());
  const auto saver = Saver::Create(*engine, comm, {.deadline = std::chrono::minutes(1)}).value();
  const auto save = [&](std::uint64_t step) {
    return SaveState(*saver, SaveTarget::InSeries("run"), StateOf(comm.size(), step), comm.rank(),
                     step);
  };
  const auto at = static_cast<std::size_t>(comm.rank());
  outcome.before[at] = save(1);
  if (fault != nullptr) storage->Fail(*fault);
  storage->ClearLog();
  outcome.under[at] = save(2);
  if (fault != nullptr) {
    outcome.is_met = storage->fault_count() > 0;
    outcome.use_after_failure = FindUseAfterFailure(storage->calls());
  }
  storage->Heal();
  EXPECT_TRUE(comm.Barrier().ok());
  outcome.after[at] = save(3);
}

// The directory in the series for this step, or a name that is not there.
std::string DirectoryOf(const JobOutcome& outcome, std::uint64_t step) {
  const std::string prefix = "step-00000000000" + std::to_string(step);
  for (const std::string& name : FileNames(*outcome.memory, "run")) {
    if (name.starts_with(prefix)) return "run/" + name;
  }
  return "run/none";
}

void ExpectSameEverywhere(const Saved& saved) {
  for (const auto& one : saved) EXPECT_EQ(one.status(), saved.front().status());
}

// The directory was made for the attempt, and goes with it.
void ExpectDirectoryRemoved(const JobOutcome& outcome, const StorageFault& fault) {
  const bool may_stay = BlocksCleanUp({fault}) || fault.op == StorageOp::kCreateDirectories;
  EXPECT_TRUE(may_stay || DirectoryOf(outcome, 2) == "run/none");
}

// False if the fault did not occur.
bool CheckOneJob(int size, int rank, const StorageFault& fault) {
  JobOutcome outcome;
  const Saved nothing(static_cast<std::size_t>(size), Result<CommitInfo>(CommitInfo()));
  outcome.before = outcome.under = outcome.after = nothing;
  WithRanks(size, [&](Communicator& comm) {
    RunRank(comm, comm.rank() == rank ? &fault : nullptr, outcome);
  });
  EXPECT_EQ(outcome.use_after_failure, "");
  ExpectSameEverywhere(outcome.before);
  ExpectSameEverywhere(outcome.under);
  ExpectSameEverywhere(outcome.after);
  const Status& status = outcome.under.front().error();
  const std::string directory = DirectoryOf(outcome, 2);
  ExpectSoundOutcome(outcome.memory, directory, StateOf(size, 2), status, {fault});
  if (!status.ok()) {
    EXPECT_EQ(status.place().rank, rank);
    if (!OutcomeIsUnknown(status)) ExpectDirectoryRemoved(outcome, fault);
  }
  EXPECT_EQ(FindDifference(outcome.memory, DirectoryOf(outcome, 1), StateOf(size, 1)), "");
  EXPECT_TRUE(outcome.after.front().ok());
  EXPECT_EQ(FindDifference(outcome.memory, DirectoryOf(outcome, 3), StateOf(size, 3)), "");
  const bool is_there = Checkpoint::Open(directory, {.storage = outcome.memory}).ok();
  // If the storage says that a checkpoint, or the end of its marker, is not there, the next
  // sequence number cannot be derived from it.
  const Code code = fault.error.code();
  if (code == Code::kNotFound || code == Code::kIncomplete) return outcome.is_met;
  EXPECT_EQ(outcome.after.front()->sequence, is_there ? 3u : 2u);
  return outcome.is_met;
}

class SaverFaultsTest : public ::testing::TestWithParam<int> {};

TEST_P(SaverFaultsTest, EveryOperationOfEveryRank) {
  const int size = GetParam();
  FaultCounts sum;
  for (int rank = 0; rank < size && !HasFailure(); ++rank) {
    SCOPED_TRACE("on rank " + std::to_string(rank));
    const FaultCounts counts = ForEachPlace(
        SaveFaults(), [&](const StorageFault& fault) { return CheckOneJob(size, rank, fault); });
    sum.operations += counts.operations;
    sum.faults += counts.faults;
  }
  const bool is_behind = SavesInBackground();
  RecordRun(
      {.row = (is_behind ? "fault-save-behind-ranks-" : "fault-save-ranks-") + std::to_string(size),
       .title = "Storage faults under a collective save" +
                std::string(is_behind ? " in the background" : "") +
                ", ranks: " + std::to_string(size),
       .command = is_behind ? "ctest --test-dir build/dev -R background.fault"
                            : "ctest --test-dir build/dev -R fault.save",
       .counts = {{"operations", sum.operations}, {"faults injected", sum.faults}},
       .exact = !is_behind});
}

#ifdef SEALPOINT_TEST_SANITIZED
INSTANTIATE_TEST_SUITE_P(Ranks, SaverFaultsTest, ::testing::Values(3));
#else
INSTANTIATE_TEST_SUITE_P(Ranks, SaverFaultsTest, ::testing::Values(1, 2, 3));
#endif

}  // namespace
}  // namespace sealpoint::testing
