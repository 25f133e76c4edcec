// SPDX-License-Identifier: Apache-2.0
//
// The same over an object store: a crash before and after every request of every rank of a save, a
// clean-up and a deletion, and the save after it.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/crash/expect_crash.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

const CrashImage kBucket{.is_bucket = true};

std::string InSeries(const std::string& name) { return JoinPath(kCrashSeries, name); }

CrashHistory Record(int ranks, const CrashImage& start,
                    const std::function<Status(CrashDisk&)>& run) {
  CrashDisk disk(ranks, start);
  const Status status = run(disk);
  EXPECT_TRUE(status.ok()) << status.ToString();
  disk.Tell(0, status);
  return disk.history();
}

CrashHistory RecordSaveOver(int ranks) {
  CrashDisk disk(ranks, SeriesWith({1}, 1, kBucket));
  for (const Status& saved : SaveTogether(disk, 2)) EXPECT_TRUE(saved.ok()) << saved.ToString();
  return disk.history();
}

// What is there is whole or not committed; the next save commits, and the attempts are cleaned up.
std::string GoesOn(CrashChecker& checker, const CrashImage& image) {
  CrashDisk disk(1, image);
  const Status saved = SaveAlone(disk, 3, 0);
  if (!saved.ok()) return "the next save: " + saved.ToString();
  const Series series = OpenCrashSeries(disk);
  for (const SeriesEntry& entry : series.List().value().entries) {
    if (entry.verdict == Verdict::kCommitted) continue;
    for (int call = 0; call < 2; ++call) {
      const Status removed = series.RemoveUncommitted(entry.name).status();
      if (!removed.ok()) return "cleaning up: " + removed.ToString();
    }
    if (disk.Now().Find(InSeries(entry.name)) != nullptr) return entry.name + " is still there";
  }
  return checker.Check(disk.Now(), {.there = {1, 3}, .perhaps = {2}});
}

TEST(CrashObjects, OldStaysAndNewIsWholeOrUncommitted) {
  CrashCounts counts;
  for (const int ranks : {1, 2, 3}) {
    CrashChecker checker;
    const CrashOracle old_or_both = OldOrBoth(checker);
    counts += ExpectAccepted(RecordSaveOver(ranks), {}, [&](const auto& image, const auto& cut) {
      const std::string wrong = old_or_both(image, cut);
      return wrong.empty() ? GoesOn(checker, image) : wrong;
    });
  }
  EXPECT_EQ(counts.states, counts.points) << "a put is there or not, and nothing is lost";
  RecordRun({.row = "crash-objects-save",
             .title = "Crash states of one save to an object store: 1, 2 and 3 ranks",
             .command = "ctest --test-dir build/dev -R crash.objects",
             .counts = counts.ForResults(),
             .exact = false});  // which parts are sent first depends on the system
}

// The void marker comes first and goes last.
TEST(CrashObjects, CleanedUpIsVoidFirstAndNeverComesBack) {
  CrashCounts counts;
  const CrashImage start = SeriesWithAttempt({1}, 2, kBucket);
  const std::string name = NameOfStep(start, 2);
  const std::size_t files = start.Find(InSeries(name))->files.size();
  CrashChecker checker;
  const CrashHistory history = Record(1, start, [&](CrashDisk& disk) {
    const Status first = OpenCrashSeries(disk).RemoveUncommitted(name).status();
    return first.ok() ? OpenCrashSeries(disk).RemoveUncommitted(name).status() : first;
  });
  std::size_t void_ones = 0;
  counts += ExpectAccepted(history, {}, [&](const auto& image, const auto& cut) -> std::string {
    const std::string wrong = checker.Check(image, {.there = {1}});
    const CrashFolder* const folder = image.Find(InSeries(name));
    if (!wrong.empty() || folder == nullptr) return wrong;
    if (cut.success_count > 0) return "it is still there";
    const bool is_void = checker.Look(image, InSeries(name)).verdict == CrashVerdict::kVoid;
    void_ones += is_void ? 1 : 0;
    return is_void || folder->files.size() >= files ? "" : "something went before it was void";
  });
  EXPECT_GT(void_ones, 1u);

  const CrashImage two = SeriesWith({1, 2}, 2, kBucket);
  const std::string old = NameOfStep(two, 1);
  const CrashHistory deletion =
      Record(1, two, [&](CrashDisk& disk) { return OpenCrashSeries(disk).Delete(old); });
  counts += ExpectAccepted(deletion, {}, [&](const auto& image, const auto& cut) -> std::string {
    const std::string wrong = checker.Check(image, {.there = {2}, .perhaps = {1}});
    const bool must_be_gone = cut.success_count > 0;
    if (!wrong.empty() || !must_be_gone) return wrong;
    return image.Find(InSeries(old)) == nullptr ? "" : "it was deleted and is there";
  });
  RecordRun({.row = "crash-objects-removal",
             .title = "Crash states of a clean-up and of a deletion in an object store",
             .command = "ctest --test-dir build/dev -R crash.objects",
             .counts = counts.ForResults()});
}

// An upload that a crash left unfinished is no object, and a reply that was lost is no doubt.
TEST(CrashObjects, BothOutcomesAreReached) {
  const CrashHistory history = RecordSaveOver(2);
  CrashChecker checker;
  const auto is_there = [&](const CrashCut& cut) {
    std::string wrong;
    ForEachCrashAt(history, cut, {}, [&](const CrashImage& image, const CrashCut&) {
      wrong = checker.Check(image, {.there = {1, 2}});
      return true;
    });
    return wrong.empty();
  };
  CrashCut after = CutAfter(history, "rank 0: put run/step-*-*/COMMIT");
  EXPECT_TRUE(is_there(after));
  --after.done[0];
  EXPECT_FALSE(is_there(after));
}

}  // namespace
}  // namespace sealpoint::testing
