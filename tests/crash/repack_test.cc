// SPDX-License-Identifier: Apache-2.0
//
// A crash before and after every operation of a copy that is written anew, of a repair, both into a
// series, and of a checkpoint of a series that is thinned.
#include "sealpoint/repack.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "sealpoint/verify.h"
#include "tests/crash/expect_crash.h"
#include "tests/crash/expect_syncs.h"
#include "tests/support/crash/runs.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

// Steps 1 and 2 of one series; step 2 is to be made in a copy of the series that has step 1.
struct Job {
  std::string name;
  CrashImage source = SeriesWith({1, 2}, 2);
  std::string directory = JoinPath(kCrashSeries, NameOfStep(source, 2));
  std::function<Status(const Job&, CrashDisk&, bool& was_committed)> make;
  std::size_t file_count = 0;  // of the new checkpoint

  CrashImage Target() const {
    CrashImage image = source;
    image.folders.erase(directory);
    image.folders.erase("replica");
    return image;
  }
  Status Make(CrashDisk& disk, bool& was_committed) const {
    const Status made = make(*this, disk, was_committed);
    disk.Tell(0, made);
    return made;
  }
  CrashHistory Record(const CrashDiskOptions& options = {}) const {
    CrashDisk disk(1, Target(), options);
    bool was_committed = false;
    EXPECT_TRUE(Make(disk, was_committed).ok());
    return disk.history();
  }
};

// In one blob, where there are two.
Job CopyJob() {
  return {.name = "copy",
          .make =
              [](const Job& job, CrashDisk& disk, bool& was_committed) {
                const auto copied =
                    CopyCheckpoint({.from = job.directory, .to = job.directory},
                                   {.repack = {.from_storage = StorageOf(job.source),
                                               .to_storage = disk.View(0),
                                               .codec = Codec::kZstd,
                                               .blob_count = 1,
                                               .threads = 1,
                                               .memory_budget_bytes = kMiB}});
                if (copied.ok()) was_committed = copied->was_committed;
                return copied.status();
              },
          .file_count = 3};
}

// One blob from the replica, the others from the damaged one; the index from one of them, or a new
// one.
Job RepairJob(bool rebuild_index) {
  Job job{.name = rebuild_index ? "repair with a new index" : "repair",
          .make =
              [rebuild_index](const Job& self, CrashDisk& disk, bool& was_committed) {
                const RepairReport repaired = RepairCheckpoint(
                    {.damaged = self.directory, .replicas = {"replica"}, .to = self.directory},
                    {.from_storage = StorageOf(self.source),
                     .to_storage = disk.View(0),
                     .rebuild_index = rebuild_index,
                     .threads = 1});
                was_committed = repaired.was_committed;
                return repaired.status;
              },
          .file_count = 5};
  auto& files = job.source.folders.at(job.directory).files;
  auto& replica = job.source.folders["replica"].files;
  replica = files;
  int number = 0;
  for (auto file = files.begin(); file != files.end();) {
    const bool is_blob = file->first.ends_with(".blob");
    const bool is_index = file->first.ends_with(".index");
    if (is_blob ? number++ == 0 : is_index) {
      file = files.erase(file);
      continue;
    }
    if (is_blob) replica.erase(file->first);
    ++file;
  }
  if (rebuild_index) {
    std::erase_if(replica, [](const auto& file) { return file.first.ends_with(".index"); });
  }
  return job;
}

std::vector<Job> Jobs() { return {CopyJob(), RepairJob(false), RepairJob(true)}; }

TEST(CrashRepack, WhatIsMadeIsWholeOrUncommitted) {
  CrashCounts counts;
  for (const Job& job : Jobs()) {
    SCOPED_TRACE(job.name);
    for (const PublishMethod publish : {PublishMethod::kLink, PublishMethod::kRenameNoReplace}) {
      CrashChecker checker;
      counts += ExpectAccepted(job.Record({.publish = publish}), {}, OldOrBoth(checker));
    }
  }
  RecordRun({.row = "crash-repack",
             .title = "Crash states of a rewritten copy, and of repairs",
             .command = "ctest --test-dir build/dev -R crash.repack",
             .counts = counts.ForResults(),
             .exact = false});
}

// Whatever the crash left, the next call makes it, or finds it, and leaves nothing else.
TEST(CrashRepack, IsMadeFromWhateverIsThere) {
  for (const Job& job : Jobs()) {
    SCOPED_TRACE(job.name);
    CrashChecker checker;
    int begun = 0;
    int found = 0;
    ForEachCrash(job.Record(), {.contents = CrashContents::kUniform},
                 [&](const CrashImage& image, const CrashCut&) {
                   CrashDisk disk(1, image);
                   bool was_committed = false;
                   const Status again = job.Make(disk, was_committed);
                   EXPECT_TRUE(again.ok()) << again.ToString() << image.Describe();
                   ++(was_committed ? found : begun);
                   const CrashImage now = disk.Now();
                   EXPECT_EQ(checker.Check(now, {.there = {1, 2}}), "") << now.Describe();
                   EXPECT_EQ(now.Find(job.directory)->files.size(), job.file_count)
                       << now.Describe();
                   return !::testing::Test::HasFailure();
                 });
    EXPECT_GT(begun, 10);
    EXPECT_GT(found, 1);
  }
}

TEST(CrashRepack, EachSyncMatters) {
  const std::string sync = "rank 0: sync directory run/step-*-*";
  CrashChecker checker;
  const SyncCounts syncs = ExpectEachSyncMatters(
      CopyJob().Record(), {.contents = CrashContents::kUniform},
      {{sync + " #1", "the names of blobs, if another one commits"}}, OldOrBoth(checker));
  EXPECT_GT(syncs.needed, 3u);
}

// At each moment the old one or the new one is whole, and both neighbours are.
TEST(CrashRepack, ThinningNeverLosesAStep) {
  const CrashImage series = SeriesWith({1, 2, 3});
  const std::string name = NameOfStep(series, 2);
  const std::string source = JoinPath(kCrashSeries, name);
  CrashDisk disk(1, series, {});
  const auto thin =
      ThinCheckpoint({.from = source, .to = ""}, {.drop = {"rng"},
                                                  .remove_source = true,
                                                  .repack = {.from_storage = disk.View(0),
                                                             .to_storage = disk.View(0),
                                                             .threads = 1,
                                                             .memory_budget_bytes = kMiB}});
  ASSERT_TRUE(thin.ok()) << thin.error().ToString();
  CrashChecker checker;
  int only_source = 0;
  int only_thin = 0;
  ForEachCrash(disk.history(), {.contents = CrashContents::kUniform},
               [&](const CrashImage& image, const CrashCut&) {
                 for (const std::uint64_t step : {std::uint64_t{1}, std::uint64_t{3}}) {
                   const std::string path = JoinPath(kCrashSeries, NameOfStep(image, step));
                   EXPECT_EQ(checker.Look(image, path).verdict, CrashVerdict::kWhole);
                 }
                 const bool has_source =
                     checker.Look(image, source).verdict == CrashVerdict::kWhole;
                 const auto made = Verify(thin->path, {.storage = StorageOf(image)});
                 const bool has_thin = made.ok() && made->verdict == Verdict::kCommitted;
                 EXPECT_TRUE(has_source || has_thin) << image.Describe();
                 only_source += has_source && !has_thin ? 1 : 0;
                 only_thin += has_thin && !has_source ? 1 : 0;
                 return !::testing::Test::HasFailure();
               });
  EXPECT_GT(only_source, 10);
  EXPECT_GT(only_thin, 2);
}

}  // namespace
}  // namespace sealpoint::testing
