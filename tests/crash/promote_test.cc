// SPDX-License-Identifier: Apache-2.0
//
// A crash before and after every operation of a promotion into a series.
#include "sealpoint/promote.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/crash/expect_crash.h"
#include "tests/crash/expect_syncs.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

// Steps 1 and 2 of one series; step 2 is on its way into a copy of the series that has step 1.
struct Staged {
  CrashImage local = SeriesWith({1, 2}, 2);
  std::string directory = JoinPath(kCrashSeries, NameOfStep(local, 2));

  CrashImage Target() const {
    CrashImage image = local;
    image.folders.erase(directory);
    return image;
  }
  Status Promote(CrashDisk& disk, int actor) const {
    const auto promoted = sealpoint::Promote(
        {.from = directory, .to = directory},
        {.from_storage = StorageOf(local), .to_storage = disk.View(actor), .threads = 1});
    disk.Tell(actor, promoted.status());
    return promoted.status();
  }
};

CrashHistory RecordPromotion(const Staged& staged, int actors, const CrashDiskOptions& options) {
  CrashDisk disk(actors, staged.Target(), options);
  std::vector<std::thread> others;
  for (int actor = 1; actor < actors; ++actor) {
    others.emplace_back([&, actor] { EXPECT_TRUE(staged.Promote(disk, actor).ok()); });
  }
  const Status promoted = staged.Promote(disk, 0);
  for (std::thread& other : others) other.join();
  EXPECT_TRUE(promoted.ok()) << promoted.ToString();
  return disk.history();
}

TEST(CrashPromotion, TheFinalOneIsWholeOrUncommitted) {
  const Staged staged;
  CrashCounts counts;
  for (const PublishMethod publish : {PublishMethod::kLink, PublishMethod::kRenameNoReplace}) {
    CrashChecker checker;
    counts +=
        ExpectAccepted(RecordPromotion(staged, 1, {.publish = publish}), {}, OldOrBoth(checker));
  }
  // An old job that is still alive beside the new one. They know of each other by the disk alone,
  // whose directory either of them syncs for both (spec/staged.md).
  CrashChecker checker;
  counts += ExpectAccepted(
      RecordPromotion(staged, 2, {}),
      {.contents = CrashContents::kUniform, .reach = SyncReach::kEverybodys, .only_prefixes = true},
      OldOrBoth(checker));
  RecordRun({.row = "crash-promotion",
             .title = "Crash states of a promotion, by one process and by two simultaneously",
             .command = "ctest --test-dir build/dev -R crash.promote",
             .counts = counts.ForResults(),
             .exact = false});  // how two of them meet depends on the system
}

// Whatever the crash left, the next try goes on from it, and leaves nothing but the checkpoint.
TEST(CrashPromotion, IsResumedFromWhateverIsThere) {
  const Staged staged;
  int tries = 0;
  ForEachCrash(
      RecordPromotion(staged, 1, {}), {.contents = CrashContents::kUniform},
      [&](const CrashImage& image, const CrashCut&) {
        CrashDisk disk(1, image);
        const Status again = staged.Promote(disk, 0);
        EXPECT_TRUE(again.ok()) << again.ToString();
        const CrashImage now = disk.Now();
        EXPECT_EQ(now.Find(staged.directory)->hash(), staged.local.Find(staged.directory)->hash())
            << now.Describe();
        ++tries;
        return !::testing::Test::HasFailure();
      });
  EXPECT_GT(tries, 50);
}

TEST(CrashPromotion, EachSyncMatters) {
  const Staged staged;
  CrashChecker checker;
  const SyncCounts syncs = ExpectEachSyncMatters(
      RecordPromotion(staged, 1, {}), {.contents = CrashContents::kUniform},
      {{"rank 0: sync directory run/step-*-* #1", "the names of blobs, if another one publishes"}},
      OldOrBoth(checker));
  EXPECT_GT(syncs.needed, 3u);
}

}  // namespace
}  // namespace sealpoint::testing
