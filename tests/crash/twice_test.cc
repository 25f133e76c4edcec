// SPDX-License-Identifier: Apache-2.0
//
// Two crashes: the next save continues after whatever the first one left, or it is cleaned up, and
// the power fails again.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/crash/expect_crash.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

// What a first crash left, and the steps that are whole in it.
struct Survivor {
  CrashImage image{};
  std::vector<std::uint64_t> steps{1};
};

// The images after a crash in a save of step 2. Only the names of files that no marker pins are
// checked, so that one way of losing data represents all.
std::vector<Survivor> AfterFirstCrash() {
  std::vector<Survivor> survivors;
  CrashChecker checker;
  ForEachCrash(RecordSave(2), {.contents = CrashContents::kUniform},
               [&](const CrashImage& image, const CrashCut&) {
                 Survivor one{.image = image};
                 if (checker.Check(image, {.there = {1, 2}}).empty()) one.steps.push_back(2);
                 survivors.push_back(std::move(one));
                 return true;
               });
  return survivors;
}

// Whole steps stay; the next one is there or not; nothing else was or becomes committed.
CrashOracle NothingIsLost(CrashChecker& checker, const Survivor& before, std::uint64_t next) {
  return [&checker, &before, next](const CrashImage& image, const CrashCut& cut) {
    CrashPromise promise{.there = before.steps};
    (cut.success_count > 0 ? promise.there : promise.perhaps).push_back(next);
    return checker.Check(image, promise);
  };
}

TEST(CrashTwice, NextSaveGoesOnFromWhateverIsThere) {
  CrashCounts counts;
  const std::vector<Survivor> survivors = AfterFirstCrash();
  CrashChecker checker;
  for (const Survivor& survivor : survivors) {
    CrashDisk disk(2, survivor.image);
    for (const Status& saved : SaveTogether(disk, 3)) ASSERT_TRUE(saved.ok()) << saved.ToString();
    counts += ExpectAccepted(disk.history(), {.contents = CrashContents::kUniform},
                             NothingIsLost(checker, survivor, 3));
    if (HasFailure()) break;
  }
  auto results = counts.ForResults();
  results.insert(results.begin(), {"first crashes", survivors.size()});
  RecordRun({.row = "crash-twice",
             .title = "Crash states of the save after a crash in a save",
             .command = "ctest --test-dir build/dev -R crash.twice",
             .counts = results});
}

// Both clean-ups of every attempt that the first crash left, one after the other.
TEST(CrashTwice, CleanUpOfWhateverIsThere) {
  CrashCounts counts;
  std::uint64_t attempts = 0;
  CrashChecker checker;
  for (const Survivor& survivor : AfterFirstCrash()) {
    CrashDisk disk(1, survivor.image);
    const Series series = OpenCrashSeries(disk);
    for (const SeriesEntry& entry : series.List().value().entries) {
      if (entry.verdict != Verdict::kUncommitted) continue;
      ++attempts;
      ASSERT_TRUE(series.RemoveUncommitted(entry.name).ok());
      ASSERT_TRUE(series.RemoveUncommitted(entry.name).ok());
      EXPECT_EQ(disk.Now().Find(entry.path), nullptr);
    }
    counts += ExpectAccepted(disk.history(), {}, [&](const CrashImage& image, const CrashCut&) {
      return checker.Check(image, {.there = survivor.steps});
    });
    if (HasFailure()) break;
  }
  auto results = counts.ForResults();
  results.insert(results.begin(), {"attempts", attempts});
  RecordRun({.row = "crash-twice-cleanup",
             .title = "Crash states of cleaning up after a crash in a save",
             .command = "ctest --test-dir build/dev -R crash.twice",
             .counts = results});
}

// What a crash left of a clean-up, or of a deletion, is finished by the next try.
TEST(CrashTwice, InterruptedRemovalsAreFinishedByTheNext) {
  CrashChecker checker;
  const CrashImage start = SeriesWith({1, 2});
  const std::string name = NameOfStep(start, 1);
  CrashDisk first(1, start);
  ASSERT_TRUE(OpenCrashSeries(first).Delete(name).ok());
  ForEachCrash(first.history(), {}, [&](const CrashImage& image, const CrashCut&) {
    CrashDisk disk(1, image);
    const Series series = OpenCrashSeries(disk);
    if (!series.Delete(name).ok()) {
      const bool was_ours = series.RemoveUncommitted(name).ok();
      EXPECT_EQ(was_ours, series.RemoveUncommitted(name).ok());
    }
    ExpectAccepted(disk.history(), {}, [&](const CrashImage& again, const CrashCut&) {
      return checker.Check(again, {.there = {2}, .perhaps = {1}});
    });
    EXPECT_EQ(disk.Now().Find(JoinPath(kCrashSeries, name)), nullptr);
    return !::testing::Test::HasFailure();
  });
}

}  // namespace
}  // namespace sealpoint::testing
