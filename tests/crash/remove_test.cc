// SPDX-License-Identifier: Apache-2.0
//
// A crash before and after every operation of deleting a checkpoint and of clean-up.
#include <gtest/gtest.h>

#include <string>

#include "tests/crash/expect_crash.h"
#include "tests/crash/expect_syncs.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

std::string DirectoryOf(const std::string& name) { return JoinPath(kCrashSeries, name); }

CrashImage WithForeignFile(CrashImage image, const std::string& directory) {
  image.folders.at(directory).files["README"] = std::make_shared<CrashContent>(Bytes(3));
  return image;
}

struct Removal {
  std::string directory{};
  CrashHistory history{};
};

// Step 1 of a series with 1 and 2.
Removal RecordDelete(bool with_foreign_file) {
  CrashImage image = SeriesWith({1, 2}, 2);
  const std::string name = NameOfStep(image, 1);
  if (with_foreign_file) image = WithForeignFile(std::move(image), DirectoryOf(name));
  CrashDisk disk(1, image);
  const Status deleted = OpenCrashSeries(disk).Delete(name);
  EXPECT_TRUE(deleted.ok()) << deleted.ToString();
  disk.Tell(0, deleted);
  return {.directory = DirectoryOf(name), .history = disk.history()};
}

// The deleted checkpoint is whole, uncommitted or gone; the other one is there. After success no
// Sealpoint file of the deleted one is left.
CrashOracle GoneOrWhole(CrashChecker& checker, const std::string& directory) {
  return [&checker, directory](const CrashImage& image, const CrashCut& cut) -> std::string {
    std::string wrong = checker.Check(image, {.there = {2}, .perhaps = {1}});
    if (!wrong.empty() || cut.success_count == 0) return wrong;
    const CrashFolder* const folder = image.Find(directory);
    if (folder == nullptr) return "";
    const bool has_only_foreign = folder->files.size() == 1 && folder->files.contains("README");
    return has_only_foreign ? "" : "it was deleted and is there";
  };
}

TEST(CrashDelete, DeletedIsWholeOrUncommittedOrGone) {
  CrashCounts counts;
  for (const bool with_foreign_file : {false, true}) {
    CrashChecker checker;
    const Removal removal = RecordDelete(with_foreign_file);
    counts += ExpectAccepted(removal.history, {}, GoneOrWhole(checker, removal.directory));
  }
  RecordRun({.row = "crash-delete",
             .title = "Crash states of deleting a checkpoint",
             .command = "ctest --test-dir build/dev -R crash.remove",
             .counts = counts.ForResults()});
}

TEST(CrashDelete, EachSyncIsNeeded) {
  CrashChecker checker;
  const Removal alone = RecordDelete(false);
  ExpectEachSyncMatters(
      alone.history, {},
      {{"rank 0: sync directory run/step-*-* #1", "the newer one is durable here (R-SER-11)"},
       {"rank 0: sync directory run/step-*-* #3", "the directory goes with what is left in it"}},
      GoneOrWhole(checker, alone.directory));
  const Removal beside = RecordDelete(true);
  ExpectEachSyncMatters(
      beside.history, {},
      {{"rank 0: sync directory run/step-*-* #1", "the newer one is durable here (R-SER-11)"}},
      GoneOrWhole(checker, beside.directory));
}

// R-SER-11: the newer one was published, but its name is not durable yet when the older one is
// deleted by another process of the same machine.
TEST(CrashDelete, NewerOneIsMadeDurableFirst) {
  CrashDisk rehearsal(1, SeriesWith({1}));
  ASSERT_TRUE(WriteAndCommit(rehearsal, 2, "run/newer").ok());
  const CrashHistory good = rehearsal.history();
  const std::size_t sync = good.Find("rank 0: publish COMMIT") + 1;

  CrashDisk disk(2, SeriesWith({1}));
  disk.Fail({.actor = 0, .nth = static_cast<int>(sync) + 1});
  const std::string name = NameOfStep(disk.Now(), 1);
  ASSERT_TRUE(OutcomeIsUnknown(WriteAndCommitAlone(disk, 2, "run/newer")));
  ASSERT_TRUE(OpenCrashSeries(disk, 1).Delete(name).ok());

  CrashChecker checker;
  const CrashOracle never_none = [&](const CrashImage& image, const CrashCut&) {
    const bool has_old = checker.Check(image, {.there = {1}, .perhaps = {2}}).empty();
    return has_old ? "" : checker.Check(image, {.there = {2}});
  };
  const CrashHistory history = disk.history();
  CrashOptions options{.reach = SyncReach::kEverybodys, .only_prefixes = true};
  ExpectAccepted(history, options, never_none);
  const std::size_t by_deleter = history.Find("rank 1: sync directory run/newer");
  options.is_lost = [&](const CrashOp& op) { return &op == &history.ops[by_deleter]; };
  EXPECT_NE(FirstRejected(history, options, never_none), "");
}

// Pinned, or no longer pinned, once that was reported; before, one or the other.
CrashHistory RecordKeep(bool is_kept) {
  CrashImage image = SeriesWith({1});
  const std::string directory = DirectoryOf(NameOfStep(image, 1));
  if (!is_kept) {
    image.folders.at(directory).files["KEEP"] = std::make_shared<CrashContent>(Bytes());
  }
  CrashDisk disk(1, image);
  const auto changed = SetKept(*disk.View(0), directory, is_kept);
  EXPECT_TRUE(changed.value_or(false));
  disk.Tell(0, changed.status());
  return disk.history();
}

TEST(CrashKeep, WhatWasReportedSurvives) {
  CrashCounts counts;
  for (const bool is_kept : {true, false}) {
    CrashChecker checker;
    const CrashOracle as_reported = [&](const CrashImage& image,
                                        const CrashCut& cut) -> std::string {
      std::string wrong = checker.Check(image, {.there = {1}});
      if (!wrong.empty() || cut.success_count == 0) return wrong;
      const bool is_there = image.Find(DirectoryOf(NameOfStep(image, 1)))->files.contains("KEEP");
      return is_there == is_kept ? "" : "KEEP is as it was before";
    };
    const CrashHistory history = RecordKeep(is_kept);
    counts += ExpectAccepted(history, {}, as_reported);
    CrashOptions options;
    options.is_lost = [&](const CrashOp& op) { return op.kind == CrashOpKind::kSyncDirectory; };
    EXPECT_EQ(FirstRejected(history, options, as_reported), "KEEP is as it was before");
  }
  RecordRun({.row = "crash-keep",
             .title = "Crash states of pinning and unpinning a checkpoint",
             .command = "ctest --test-dir build/dev -R crash.remove",
             .counts = counts.ForResults()});
}

}  // namespace
}  // namespace sealpoint::testing
