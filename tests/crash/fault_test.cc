// SPDX-License-Identifier: Apache-2.0
//
// One operation of a save fails, and later the power goes.
#include <gtest/gtest.h>

#include <string>

#include "tests/crash/expect_crash.h"
#include "tests/support/crash_runs.h"
#include "tests/support/results.h"

namespace sealpoint::testing {
namespace {

struct FaultCounts {
  std::uint64_t faults = 0;
  std::uint64_t told_of_failure = 0;
  CrashCounts crashes{};
};

void FailOne(const CrashImage& start, int ranks, const CrashFault& fault, FaultCounts& counts) {
  CrashDisk disk(ranks, start);
  disk.Fail(fault);
  const std::vector<Status> results = SaveTogether(disk, 2);
  ++counts.faults;
  if (!results.front().ok()) ++counts.told_of_failure;
  for (const Status& result : results) EXPECT_EQ(result.ToString(), results.front().ToString());
  CrashJudge judge;
  SCOPED_TRACE("rank " + std::to_string(fault.actor) + ", operation " + std::to_string(fault.nth) +
               (fault.takes_effect ? ", done all the same" : ""));
  counts.crashes +=
      ExpectAccepted(disk.history(), {.contents = CrashContents::kUniform}, OldOrBoth(judge));
}

// The n-th operation of a rank fails, for all n: without effect, and although it happened. Whoever
// is told of success has the new checkpoint, and whoever is told of a failure will never meet it.
TEST(CrashFault, FailedSaveIsNeverThereAndSuccessAlwaysIs) {
  FaultCounts counts;
  const CrashImage start = SeriesWith({1});
  for (const int ranks : {1, 2, 3}) {
    CrashDisk good(ranks, start);
    for (const Status& saved : SaveTogether(good, 2)) ASSERT_TRUE(saved.ok()) << saved.ToString();
    for (int actor = 0; actor < ranks; ++actor) {
      for (int nth = 1; nth <= good.change_count(actor); ++nth) {
        for (const bool takes_effect : {false, true}) {
          FailOne(start, ranks, {.actor = actor, .nth = nth, .takes_effect = takes_effect}, counts);
        }
      }
    }
  }
  EXPECT_GT(counts.told_of_failure, counts.faults / 2);
  auto results = counts.crashes.ForResults();
  results.insert(results.begin(), {"faults", counts.faults});
  RecordRun({.row = "crash-fault",
             .title = "Crash states of saves of which one operation fails",
             .command = "ctest --test-dir build/dev -R crash.fault",
             .counts = results,
             .exact = false});
}

}  // namespace
}  // namespace sealpoint::testing
