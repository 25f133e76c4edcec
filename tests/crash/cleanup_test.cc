// SPDX-License-Identifier: Apache-2.0
//
// A crash before and after every operation of cleaning up an attempt that was never committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/crash/expect_crash.h"
#include "tests/crash/expect_syncs.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

struct CleanUp {
  std::string title{};
  std::string directory{};
  CrashHistory history{};
  std::size_t blob_count = 0;  // at the start
  bool is_void_at_start = false;
  BeltAndBraces not_needed{};
};

std::size_t CountBlobs(const CrashFolder& folder) {
  return static_cast<std::size_t>(
      std::count_if(folder.files.begin(), folder.files.end(),
                    [](const auto& file) { return file.first.ends_with(".blob"); }));
}

CleanUp Record(const CrashImage& start, bool is_void_at_start, BeltAndBraces not_needed = {}) {
  const std::string name = NameOfStep(start, 2);
  CrashDisk disk(1, start);
  const Status removed = OpenCrashSeries(disk).RemoveUncommitted(name).status();
  EXPECT_TRUE(removed.ok()) << removed.ToString();
  disk.Tell(0, removed);
  return {.directory = JoinPath(kCrashSeries, name),
          .history = disk.history(),
          .blob_count = CountBlobs(*start.Find(JoinPath(kCrashSeries, name))),
          .is_void_at_start = is_void_at_start,
          .not_needed = std::move(not_needed)};
}

CrashImage AfterFirstCleanUp(const CrashImage& start) {
  CrashDisk disk(1, start);
  EXPECT_TRUE(OpenCrashSeries(disk).RemoveUncommitted(NameOfStep(start, 2)).ok());
  return disk.Now();
}

// A void marker beside files of the attempt: the state after a crash in the middle of the first
// clean-up.
CrashImage InterruptedCleanUp(const CrashImage& start) {
  CrashDisk disk(1, start);
  const std::string directory = JoinPath(kCrashSeries, NameOfStep(start, 2));
  EXPECT_TRUE(PublishVoidMarker(*disk.View(0), directory).ok());
  return disk.Now();
}

CleanUp FirstCleanUp() {
  return Record(SeriesWithAttempt({1}, 2), false,
                {{"rank 0: sync directory run/step-*-* #1", "a void marker pins nothing"}});
}

CleanUp SecondCleanUp() {
  return Record(
      AfterFirstCleanUp(SeriesWithAttempt({1}, 2)), true,
      {{"rank 0: sync directory run/step-*-* #1", "nothing was left to remove"},
       {"rank 0: sync directory run/step-*-* #2", "the directory takes the marker along"}});
}

CleanUp SecondAfterACrashInTheFirst() {
  return Record(
      InterruptedCleanUp(SeriesWithAttempt({1}, 2)), true,
      {{"rank 0: sync directory run/step-*-* #2", "the directory takes the marker along"}});
}

// The older checkpoint stays and nothing else is ever committed. No file of the attempt is removed
// before the void marker is durable, because the machine of its writer may still run, and publish.
// A void marker that was durable is removed last. After success only the void marker is left, or,
// if it was there before, nothing.
CrashOracle CleanedUp(CrashChecker& checker, const CleanUp& clean_up) {
  return [&checker, &clean_up](const CrashImage& image, const CrashCut& cut) -> std::string {
    std::string wrong = checker.Check(image, {.there = {1}});
    if (!wrong.empty()) return wrong;
    const CrashFolder* const folder = image.Find(clean_up.directory);
    const bool is_void = checker.Look(image, clean_up.directory).verdict == CrashVerdict::kVoid;
    if (clean_up.is_void_at_start && folder != nullptr && !is_void && !folder->files.empty()) {
      return "the void marker went before the rest";
    }
    if (!clean_up.is_void_at_start && !is_void && CountBlobs(*folder) != clean_up.blob_count) {
      return "something went before the void marker was durable";
    }
    if (cut.success_count == 0) return "";
    if (clean_up.is_void_at_start) return folder == nullptr ? "" : "it is still there";
    return is_void && folder->files.size() == 1 ? "" : "not only the void marker is left";
  };
}

TEST(CrashCleanUp, OldStaysAndTheAttemptNeverComesBack) {
  CrashCounts counts;
  for (const CleanUp& clean_up : {FirstCleanUp(), SecondCleanUp(), SecondAfterACrashInTheFirst()}) {
    CrashChecker checker;
    counts += ExpectAccepted(clean_up.history, {}, CleanedUp(checker, clean_up));
  }
  RecordRun({.row = "crash-cleanup",
             .title = "Crash states of cleaning up an uncommitted attempt",
             .command = "ctest --test-dir build/dev -R crash.remove",
             .counts = counts.ForResults()});
}

TEST(CrashCleanUp, EachSyncIsNeeded) {
  for (const CleanUp& clean_up : {FirstCleanUp(), SecondCleanUp(), SecondAfterACrashInTheFirst()}) {
    CrashChecker checker;
    ExpectEachSyncMatters(clean_up.history, {}, clean_up.not_needed, CleanedUp(checker, clean_up));
  }
}

// A void marker alone: after success it is there for good.
TEST(CrashCleanUp, VoidMarkerIsDurable) {
  const CrashImage start = SeriesWithAttempt({1}, 2);
  const std::string directory = JoinPath(kCrashSeries, NameOfStep(start, 2));
  CrashDisk disk(1, start);
  const Status published = PublishVoidMarker(*disk.View(0), directory);
  ASSERT_TRUE(published.ok()) << published.ToString();
  disk.Tell(0, published);
  CrashChecker checker;
  const CrashOracle is_void = [&](const CrashImage& image, const CrashCut& cut) -> std::string {
    const std::string wrong = checker.Check(image, {.there = {1}});
    const bool must_be_void = cut.success_count > 0;
    if (!wrong.empty() || !must_be_void) return wrong;
    const CrashVerdict verdict = checker.Look(image, directory).verdict;
    return verdict == CrashVerdict::kVoid ? "" : "the void marker is gone";
  };
  const CrashHistory history = disk.history();
  ExpectAccepted(history, {}, is_void);
  ExpectEachSyncMatters(history, {},
                        {{"rank 0: sync directory run/step-*-* #1", "a void marker pins nothing"}},
                        is_void);
}

}  // namespace
}  // namespace sealpoint::testing
