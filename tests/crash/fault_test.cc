// SPDX-License-Identifier: Apache-2.0
//
// One operation fails, and later the power goes.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/crash/expect_crash.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

struct FaultCounts {
  std::uint64_t faults = 0;
  std::uint64_t told_of_failure = 0;
  CrashCounts crashes{};
};

void Record(const FaultCounts& counts, const std::string& row, const std::string& title) {
  auto results = counts.crashes.ForResults();
  results.insert(results.begin(), {"faults", counts.faults});
  RecordRun({.row = row,
             .title = title,
             .command = "ctest --test-dir build/dev -R crash.fault",
             .counts = results,
             .exact = false});
}

// Makes each operation of an actor fail while `run` goes on, and checks what crashes leave of it.
// `run` reports the outcome to the disk and returns it.
void FailEach(int actors, const CrashImage& start, const std::function<Status(CrashDisk&)>& run,
              const CrashOracle& oracle, FaultCounts& counts) {
  CrashDisk good(actors, start);
  ASSERT_TRUE(run(good).ok());
  for (int actor = 0; actor < actors; ++actor) {
    for (int nth = 1; nth <= good.change_count(actor); ++nth) {
      for (const bool takes_effect : {false, true}) {
        SCOPED_TRACE("rank " + std::to_string(actor) + ", operation " + std::to_string(nth) +
                     (takes_effect ? ", done all the same" : ""));
        CrashDisk disk(actors, start);
        disk.Fail({.actor = actor, .nth = nth, .takes_effect = takes_effect});
        ++counts.faults;
        if (!run(disk).ok()) ++counts.told_of_failure;
        counts.crashes +=
            ExpectAccepted(disk.history(), {.contents = CrashContents::kUniform}, oracle);
      }
    }
  }
}

// The n-th operation of a rank fails, for all n: without effect, and although it happened. If
// success is reported, the new checkpoint is there; if a failure is reported, it never appears.
TEST(CrashFault, FailedSaveIsNeverThereAndSuccessAlwaysIs) {
  FaultCounts counts;
  const CrashImage start = SeriesWith({1});
  CrashChecker checker;
  const auto save = [](CrashDisk& disk) {
    const std::vector<Status> results = SaveTogether(disk, 2);
    for (const Status& result : results) EXPECT_EQ(result.ToString(), results.front().ToString());
    return results.front();
  };
  const auto commit = [](CrashDisk& disk) { return WriteAndCommitAlone(disk, 2, "run/mine"); };
  for (const int ranks : {1, 2, 3}) FailEach(ranks, start, save, OldOrBoth(checker), counts);
  FailEach(1, start, commit, OldOrBoth(checker), counts);
  EXPECT_GT(counts.told_of_failure, counts.faults / 2);
  Record(counts, "crash-fault", "Crash states of saves with one failing operation");
}

// With `start`, an empty disk or object store.
FaultCounts FailRemovals(const CrashImage& start) {
  FaultCounts counts;
  CrashChecker checker;
  const auto reported = [](CrashDisk& disk, Status status) {
    disk.Tell(0, status);
    return status;
  };
  const CrashImage two = SeriesWith({1, 2}, 1, start);
  const std::string older = NameOfStep(two, 1);
  FailEach(
      1, two, [&](CrashDisk& disk) { return reported(disk, OpenCrashSeries(disk).Delete(older)); },
      [&](const CrashImage& image, const CrashCut&) {
        return checker.Check(image, {.there = {2}, .perhaps = {1}});
      },
      counts);
  const CrashImage attempt = SeriesWithAttempt({1}, 2, start);
  const std::string name = NameOfStep(attempt, 2);
  FailEach(
      1, attempt,
      [&](CrashDisk& disk) {
        const Series series = OpenCrashSeries(disk);
        const Status first = series.RemoveUncommitted(name).status();
        return reported(disk, first.ok() ? series.RemoveUncommitted(name).status() : first);
      },
      [&](const CrashImage& image, const CrashCut&) {
        return checker.Check(image, {.there = {1}});
      },
      counts);
  return counts;
}

TEST(CrashFault, FailedRemovalDamagesNothing) {
  const FaultCounts counts = FailRemovals({});
  EXPECT_GT(counts.told_of_failure, counts.faults / 2);
  Record(counts, "crash-fault-removal", "Crash states of removals with one failing operation");
}

// The same over an object store, where a request that took effect lost its reply. That of the
// marker is read back, so that more of them end well.
TEST(CrashFault, RequestsThatFailLeaveNoDoubt) {
  const CrashImage bucket{.is_bucket = true};
  FaultCounts counts = FailRemovals(bucket);
  const CrashImage start = SeriesWith({1}, 1, bucket);
  CrashChecker checker;
  const auto save = [](CrashDisk& disk) {
    const std::vector<Status> results = SaveTogether(disk, 2);
    for (const Status& result : results) EXPECT_FALSE(OutcomeIsUnknown(result));
    return results.front();
  };
  for (const int ranks : {1, 2, 3}) FailEach(ranks, start, save, OldOrBoth(checker), counts);
  EXPECT_GT(counts.told_of_failure, counts.faults / 4);
  Record(counts, "crash-fault-objects",
         "Crash states of saves and removals in an object store with one failing request");
}

}  // namespace
}  // namespace sealpoint::testing
