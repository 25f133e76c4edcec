// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/prune.pml: actor 0 commits step 3, actor 1 prunes what is
// older, and then files are lost, which is an operation of actor 2.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/crash/counterexample_play.h"
#include "tests/support/crash/runs.h"
#include "tests/support/crash/turns.h"

namespace sealpoint::testing {
namespace {

using enum Outcome;
using enum StorageOp;

const std::string kNewest = "run/newest";

struct Pruning {
  std::function<void(Stage&)> prepare{};
  bool commits = true;  // step 3
  bool is_newest_damaged = false;
  // Null: Series::Prune.
  std::function<Status(Storage&)> prune{};
  RetentionPolicy policy{};
};

const CrashImage& Start() {
  static const CrashImage start = SeriesWith({1, 2});
  return start;
}

std::string DirectoryOf(std::uint64_t step) {
  return JoinPath(kCrashSeries, NameOfStep(Start(), step));
}

Status RemoveAll(Storage& storage, std::uint64_t step) {
  const auto opened = storage.OpenDirectory(DirectoryOf(step)).value();
  EXPECT_TRUE(opened->Remove("COMMIT").ok());
  EXPECT_TRUE(opened->Sync().ok());
  for (const EntryInfo& entry : opened->List().value()) {
    EXPECT_TRUE(opened->Remove(entry.name).ok());
  }
  return opened->Sync();
}

// The pruning falls behind the publication and before the sync of it.
Played Play(const Pruning& pruning) {
  Stage stage(3, Start());
  if (pruning.prepare) pruning.prepare(stage);
  if (pruning.is_newest_damaged) {
    stage.Before(0, kPublish, ".commit", 1, [&] { stage.RemoveOwnBlobs(0); });
  }
  std::vector<Status> results(3);
  const CrashActor committer = [&](int actor) {
    if (pruning.commits) results[0] = WriteAndCommitAlone(stage.disk(), 3, kNewest, actor);
  };
  const CrashActor pruner = [&](int actor) {
    results[1] = pruning.prune ? pruning.prune(stage.honest(actor))
                               : OpenCrashSeries(stage.disk(), actor).Prune(pruning.policy).status;
  };
  const CrashActor damage = [&](int actor) { stage.RemoveFiles(actor, DirectoryOf(2)); };
  PlayTurns(stage.disk(), {committer, pruner, damage},
            {{.actor = 0, .after = "publish COMMIT"}, {.actor = 1}, {.actor = 2}, {.actor = 0}});
  const bool may_be_told = pruning.commits && !pruning.is_newest_damaged;
  Played played = stage.Finish(results, {may_be_told ? 3u : 0u, 0, 0});
  played.options.reach = SyncReach::kEverybodys;
  played.options.only_prefixes = true;
  played.keeps_old = false;
  played.damaged = {DirectoryOf(2)};
  if (pruning.is_newest_damaged) played.damaged.push_back(kNewest);
  return played;
}

// A policy that keeps the newest alone is refused.
TEST(PruneCounterexample, keeps_one) {
  PlayCounterexample(
      {.without =
           [] {
             return Play({.commits = false, .prune = [](Storage& s) { return RemoveAll(s, 1); }});
           },
       .real = [] { return Play({.commits = false, .policy = {.keep_last = 1}}); },
       .reported = {kSuccess, kFailure, kSuccess}});
}

// As it is, step 1 stays as well, since the newest is not whole.
TEST(PruneCounterexample, damaged_counts) {
  PlayCounterexample({.without =
                          [] {
                            return Play({.is_newest_damaged = true,
                                         .prune = [](Storage& s) { return RemoveAll(s, 1); }});
                          },
                      .real = [] { return Play({.is_newest_damaged = true}); },
                      .reported = {kSuccess, kSuccess, kSuccess}});
}

TEST(PruneCounterexample, newest_not_synced) {
  PlayCounterexample({.without =
                          [] {
                            return Play({.prepare = [](Stage& s) {
                              s.storage(1).Fail(Lie(kSyncDirectory, kNewest));
                            }});
                          },
                      .real = [] { return Play({}); },
                      .reported = {kSuccess, kSuccess, kSuccess}});
}

}  // namespace
}  // namespace sealpoint::testing
