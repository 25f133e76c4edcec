// SPDX-License-Identifier: Apache-2.0
//
// Syncs that do nothing. Each sync of a good run is taken away in turn, and the oracle of the crash
// tests must notice, unless the list says why it cannot.
#include <gtest/gtest.h>

#include <string>

#include "tests/crash/expect_crash.h"
#include "tests/crash/expect_syncs.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

const BeltAndBraces kOfASave{
    {"rank 0: sync *.probe.shared #1", "a probe is compared while everybody lives"},
    {"rank 0: sync directory run/step-*-* #1",
     "rank 0 commits too, and syncs the directory once more before it publishes"},
};

TEST(CrashLostSync, EachSyncOfASaveIsNeeded) {
  SyncCounts counts;
  for (const int ranks : {1, 2, 3}) {
    CrashChecker checker;
    counts += ExpectEachSyncMatters(RecordSave(ranks), {.contents = CrashContents::kUniform},
                                    kOfASave, OldOrBoth(checker));
  }
  RecordRun({.row = "crash-lost-sync",
             .title = "Syncs of a save of 1, 2 and 3 ranks, each removed in turn",
             .command = "ctest --test-dir build/dev -R crash.lost_sync",
             .counts = {{"syncs", counts.syncs}, {"needed", counts.needed}}});
}

// The same without a communicator: the writers of the blobs and the committer are four processes.
TEST(CrashLostSync, EachSyncOfWritersAndCommitterIsNeeded) {
  CrashDisk disk(4, SeriesWith({1}));
  ASSERT_TRUE(WriteAndCommit(disk, 2, "run/mine").ok());
  CrashChecker checker;
  ExpectEachSyncMatters(disk.history(), {.contents = CrashContents::kUniform}, {},
                        OldOrBoth(checker));
}

// One rank's sync does nothing, the others' do: the marker is durable before the blob.
TEST(CrashLostSync, OnOneRankOnlyIsFoundOut) {
  const CrashHistory history = RecordSave(2);
  CrashChecker checker;
  for (const std::string sync : {"rank 1: sync *.blob", "rank 1: sync directory run/step-*-*"}) {
    const CrashOptions options{.is_lost = Dropping({sync})};
    std::string rejected;
    ForEachCrashAt(history, CutAfter(history, "rank 0: report success"), options,
                   [&](const CrashImage& image, const CrashCut& cut) {
                     rejected = OldOrBoth(checker)(image, cut);
                     EXPECT_EQ(checker.CheckNothingIsWrong(image), "");
                     return rejected.empty();
                   });
    EXPECT_NE(rejected, "") << "without " << sync;
  }
}

// A device that acknowledges every sync and makes none: what was promised may be gone, but what a
// reader returns is still right.
TEST(CrashLostSync, LyingDeviceLosesButNeverForges) {
  CrashCounts counts;
  bool is_lost_seen = false;
  bool is_damage_seen = false;
  for (const CrashContents contents : {CrashContents::kUniform, CrashContents::kEachSector}) {
    const bool is_one_rank = contents == CrashContents::kEachSector;
    CrashChecker checker;
    counts += ExpectAccepted(
        RecordSave(is_one_rank ? 1 : 2),
        {.contents = contents, .is_lost = [](const CrashOp& op) { return op.is_sync(); }},
        [&](const CrashImage& image, const CrashCut& cut) {
          const std::string broken = OldOrBoth(checker)(image, cut);
          is_lost_seen |= broken == "step 2 is gone";
          is_damage_seen |= !broken.empty() && broken != "step 2 is gone";
          return checker.CheckNothingIsWrong(image);
        });
  }
  EXPECT_TRUE(is_lost_seen);
  EXPECT_TRUE(is_damage_seen);
  RecordRun({.row = "crash-lying-device",
             .title = "Crash states of a save on a device that ignores syncs",
             .command = "ctest --test-dir build/dev -R crash.lost_sync",
             .counts = counts.ForResults(),
             .exact = false});  // which writes of the two ranks overlap depends on the system
}

}  // namespace
}  // namespace sealpoint::testing
