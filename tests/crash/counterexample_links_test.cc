// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/links.pml: step 2 links a blob of step 1, which is deleted.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/crash/counterexample_play.h"
#include "tests/support/crash/runs.h"

namespace sealpoint::testing {
namespace {

using enum Outcome;
using enum StorageOp;

// Step 1, by two ranks or one.
CrashImage Start(int ranks, const CrashImage& before = {}) {
  CrashDisk disk(ranks, before);
  for (const Status& saved : SaveTogether(disk, 1, {}, true)) EXPECT_TRUE(saved.ok());
  return disk.Now();
}

// The second names that step 2 has.
void RemoveLinked(Stage& stage, int actor) {
  const CrashHistory history = stage.disk().history();
  for (const CrashOp& op : history.ops) {
    if (op.kind != CrashOpKind::kLink || !op.name.ends_with(".blob")) continue;
    for (const auto& [path, folder] : stage.disk().Now().folders) {
      const bool is_new = path.find("000000000002") != std::string::npos;
      if (!is_new || !folder.files.contains(op.name)) continue;
      EXPECT_TRUE(stage.honest(actor).OpenDirectory(path).value()->Remove(op.name).ok());
    }
  }
}

using Prepare = std::function<void(Stage&)>;

// Two ranks, of which rank 1 links.
Played SaveAsTwo(const Prepare& prepare) {
  Stage stage(2, Start(2));
  if (prepare) prepare(stage);
  std::vector<Status> results = SaveTogether(stage.disk(), 2, {}, true);
  return stage.Finish(std::move(results), {2, 2});
}

Played SaveAlone(const Prepare& prepare, const CrashImage& before = {}) {
  Stage stage(1, Start(1, before));
  prepare(stage);
  const Status saved = testing::SaveAlone(stage.disk(), 2, 0, true);
  return stage.Finish({saved}, {2});
}

// The parent goes right before the publication; another checkpoint stays.
Played SaveWhileTheParentGoes(bool has_own_name) {
  Played played = SaveAlone(
      [&](Stage& stage) {
        stage.Before(0, kPublish, ".commit", 1, [&stage, has_own_name] {
          const std::string parent = JoinPath(kCrashSeries, NameOfStep(stage.disk().Now(), 1));
          const auto opened = stage.honest(0).OpenDirectory(parent).value();
          EXPECT_TRUE(opened->Remove("COMMIT").ok());
          EXPECT_TRUE(opened->Sync().ok());
          stage.RemoveFiles(0, parent);
          if (!has_own_name) RemoveLinked(stage, 0);
        });
      },
      SeriesWith({5}));
  played.keeps_old = false;
  return played;
}

TEST(LinksCounterexample, link_not_synced) {
  PlayCounterexample({.without =
                          [] {
                            return SaveAsTwo([](Stage& stage) {
                              stage.storage(1).Fail({.op = kSyncDirectory,
                                                     .name = "000000000002",
                                                     .nth = 0,
                                                     .persists = true,
                                                     .is_lie = true});
                            });
                          },
                      .real = [] { return SaveAsTwo({}); },
                      .reported = {kSuccess, kSuccess}});
}

// As it is, the group is written if its link fails.
TEST(LinksCounterexample, failed_link_believed) {
  PlayCounterexample(
      {.without =
           [] {
             return SaveAlone([](Stage& stage) {
               stage.Before(0, kPublish, ".commit", 1, [&stage] { RemoveLinked(stage, 0); });
             });
           },
       .real =
           [] {
             return SaveAlone([](Stage& stage) { stage.storage(0).Fail(Error(kLink, ".blob")); });
           },
       .reported = {kSuccess}});
}

TEST(LinksCounterexample, parent_named_instead) {
  PlayCounterexample({.without = [] { return SaveWhileTheParentGoes(false); },
                      .real = [] { return SaveWhileTheParentGoes(true); },
                      .reported = {kSuccess}});
}

}  // namespace
}  // namespace sealpoint::testing
