// SPDX-License-Identifier: Apache-2.0
//
// A crash before and after every operation of every rank of a save.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/crash/expect_crash.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

constexpr CrashDiskOptions kByRename{.publish = PublishMethod::kRenameNoReplace};

CrashCounts ExpectOldOrBoth(const CrashHistory& history, const CrashOptions& options = {}) {
  CrashChecker checker;
  return ExpectAccepted(history, options, OldOrBoth(checker));
}

// One writer (the committer itself) or several, and no communicator.
CrashHistory RecordCommit(int actors) {
  CrashDisk disk(actors, SeriesWith({1}));
  const Status committed = WriteAndCommit(disk, 2, "run/mine");
  EXPECT_TRUE(committed.ok()) << committed.ToString();
  return disk.history();
}

TEST(CrashSave, OldStaysAndNewIsWholeOrUncommitted) {
  CrashCounts counts;
  for (const CrashDiskOptions& disk : {CrashDiskOptions{}, kByRename}) {
    for (const int ranks : {1, 2, 3}) counts += ExpectOldOrBoth(RecordSave(ranks, disk));
  }
  for (const int actors : {1, 2, 3}) counts += ExpectOldOrBoth(RecordCommit(actors));
  RecordRun({.row = "crash-save",
             .title = "Crash states of one save: 1, 2 and 3 ranks, with and without communicator",
             .command = "ctest --test-dir build/dev -R crash.save",
             .counts = counts.ForResults(),
             .exact = false});  // which writes overlap in time depends on the system
}

// Step 2 shares a file of step 1 (R-CMT-34): a crash costs neither of them a byte.
TEST(CrashSave, ALinkedBlobIsThereOrTheSaveIsNot) {
  CrashCounts counts;
  for (const int ranks : {1, 2}) {
    const CrashHistory history = RecordLinkedSave(ranks);
    EXPECT_TRUE(std::ranges::any_of(history.ops, [](const CrashOp& op) {
      return op.kind == CrashOpKind::kLink && op.name.ends_with(".blob");
    }));
    counts += ExpectOldOrBoth(history);
  }
  RecordRun({.row = "crash-save-linked",
             .title = "Crash states of a save that links a blob of the previous checkpoint",
             .command = "ctest --test-dir build/dev -R crash.save",
             .counts = counts.ForResults(),
             .exact = false});  // which writes overlap in time depends on the system
}

// The first checkpoint of a series has no older one to fall back to.
TEST(CrashSave, FirstOfASeriesIsWholeOrUncommitted) {
  CrashDisk disk(2);
  for (const Status& saved : SaveTogether(disk, 1)) ASSERT_TRUE(saved.ok()) << saved.ToString();
  CrashChecker checker;
  ExpectAccepted(disk.history(), {}, [&](const CrashImage& image, const CrashCut& cut) {
    return checker.Check(
        image, cut.success_count > 0 ? CrashPromise{.there = {1}} : CrashPromise{.perhaps = {1}});
  });
}

// The enumeration reaches the states that matter: the new checkpoint is there before its success
// was reported, and not there after its publication.
TEST(CrashSave, BothOutcomesAreReachedBetweenPublicationAndItsSync) {
  const CrashHistory history = RecordSave(2);
  CrashChecker checker;
  int with = 0;
  int without = 0;
  ForEachCrashAt(history, CutAfter(history, "rank 0: publish COMMIT"), {},
                 [&](const CrashImage& image, const CrashCut&) {
                   const bool is_there = checker.Check(image, {.there = {1, 2}}).empty();
                   ++(is_there ? with : without);
                   return true;
                 });
  EXPECT_GT(with, 0);
  EXPECT_GT(without, 0);
}

// The product that the enumeration bounds, sampled: each case is one way of losing names and
// sectors, tried at every crash point. What fails is made smaller: fewer names, fewer sectors.
RC_GTEST_PROP(CrashSave, AnySubsetOfNamesAndSectors, ()) {
  static const std::vector<CrashHistory> histories{RecordSave(1), RecordSave(2), RecordSave(3)};
  static const std::vector<std::vector<CrashCut>> cuts{AllCuts(histories[0]), AllCuts(histories[1]),
                                                       AllCuts(histories[2])};
  static CrashChecker checker[3];
  const auto which = *rc::gen::inRange<std::size_t>(0, histories.size());
  const CrashChoice choice{.names = *rc::gen::arbitrary<std::vector<bool>>(),
                           .sectors = *rc::gen::container<std::vector<std::uint8_t>>(
                               rc::gen::inRange<std::uint8_t>(0, 4))};
  for (const CrashCut& cut : cuts[which]) {
    const CrashImage image = MakeImage(histories[which], cut, {}, choice);
    RC_ASSERT(OldOrBoth(checker[which])(image, cut) == "");
  }
}

// A save without the syncs that make it durable is rejected: the oracle is not blind.
TEST(CrashSave, PublicationWithoutItsSyncIsFoundOut) {
  const CrashHistory history = RecordSave(2);
  CrashChecker checker;
  const std::size_t sync = history.Find("rank 0: publish COMMIT") + 1;
  CrashOptions options;
  options.is_lost = [&](const CrashOp& op) { return &op == &history.ops[sync]; };
  EXPECT_EQ(FirstRejected(history, options, OldOrBoth(checker)), "step 2 is gone");
}

}  // namespace
}  // namespace sealpoint::testing
