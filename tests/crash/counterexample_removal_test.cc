// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/removal.pml: actor 0 commits step 2, actor 1 deletes step 1.
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

const std::string kNewer = "run/newer";

struct Removal {
  std::function<void(Stage&)> prepare{};
  bool commits = true;  // step 2
  bool is_newer_damaged = false;
  // Null: Series::Delete.
  std::function<Status(Storage&, const std::string& directory)> remove{};
};

const CrashImage& Start() {
  static const CrashImage start = SeriesWith({1});
  return start;
}

std::string Older() { return JoinPath(kCrashSeries, NameOfStep(Start(), 1)); }

// The deletion falls behind the publication and before the sync of it.
Played Play(const Removal& removal) {
  Stage stage(2, Start());
  if (removal.prepare) removal.prepare(stage);
  if (removal.is_newer_damaged) {
    stage.Before(0, kPublish, ".commit", 1, [&] { stage.RemoveOwnBlobs(0); });
  }
  const std::string older = NameOfStep(Start(), 1);
  std::vector<Status> results(2);
  const CrashActor committer = [&](int actor) {
    if (removal.commits) results[0] = WriteAndCommitAlone(stage.disk(), 2, kNewer, actor);
  };
  const CrashActor deleter = [&](int actor) {
    results[1] = removal.remove ? removal.remove(stage.honest(actor), Older())
                                : OpenCrashSeries(stage.disk(), actor).Delete(older);
  };
  PlayTurns(stage.disk(), {committer, deleter},
            {{.actor = 0, .after = "publish COMMIT"}, {.actor = 1}, {.actor = 0}});
  const bool may_be_told = removal.commits && !removal.is_newer_damaged;
  Played played = stage.Finish(results, {may_be_told ? 2u : 0u, 0});
  played.options.reach = SyncReach::kEverybodys;
  played.options.only_prefixes = true;
  played.keeps_old = false;
  if (removal.is_newer_damaged) played.damaged = {kNewer};
  return played;
}

Played DeleteAs(const StorageFault& fault) {
  return Play({.prepare = [&](Stage& s) { s.storage(1).Fail(fault); }});
}

// The steps of a deletion without the checks that precede them.
Status DeleteUnasked(Storage& storage, const std::string& directory) {
  const auto opened = storage.OpenDirectory(directory).value();
  EXPECT_TRUE(opened->Remove("COMMIT").ok());
  EXPECT_TRUE(opened->Sync().ok());
  for (const EntryInfo& entry : opened->List().value()) {
    EXPECT_TRUE(opened->Remove(entry.name).ok());
  }
  return opened->Sync();
}

TEST(RemovalCounterexample, files_before_marker) {
  const auto remove_first = [](Stage& s) {
    s.Before(1, kRemove, "COMMIT", 1, [&s] { s.RemoveFiles(1, Older()); });
  };
  PlayCounterexample({.without = [&] { return Play({.prepare = remove_first}); },
                      .real = [] { return Play({}); },
                      .reported = {kSuccess, kSuccess}});
}

TEST(RemovalCounterexample, removal_not_synced) {
  PlayCounterexample({.without = [] { return DeleteAs(Lie(kSyncDirectory, Older())); },
                      .real = [] { return Play({}); },
                      .reported = {kSuccess, kSuccess}});
}

TEST(RemovalCounterexample, removal_sync_error_ignored) {
  PlayCounterexample({.without = [] { return DeleteAs(Lie(kSyncDirectory, Older())); },
                      .real = [] { return DeleteAs(Error(kSyncDirectory, Older())); },
                      .reported = {kSuccess, kFailure}});
}

TEST(RemovalCounterexample, newer_not_synced) {
  PlayCounterexample({.without = [] { return DeleteAs(Lie(kSyncDirectory, kNewer)); },
                      .real = [] { return Play({}); },
                      .reported = {kSuccess, kSuccess}});
}

// A blob of the newer one went before its publication.
TEST(RemovalCounterexample, newer_not_checked) {
  PlayCounterexample(
      {.without = [] { return Play({.is_newer_damaged = true, .remove = DeleteUnasked}); },
       .real = [] { return Play({.is_newer_damaged = true}); },
       .reported = {kSuccess, kFailure}});
}

TEST(RemovalCounterexample, newest_deleted) {
  PlayCounterexample({.without = [] { return Play({.commits = false, .remove = DeleteUnasked}); },
                      .real = [] { return Play({.commits = false}); },
                      .reported = {kSuccess, kFailure}});
}

TEST(RemovalCounterexample, sync_covers_own_names) {
  PlayCounterexample({.without = [] {
    Played played = Play({});
    played.options.reach = SyncReach::kOwn;
    return played;
  }});
}

// The committer's sync fails and has no effect, and that of the deleter is reported as successful.
TEST(RemovalCounterexample, failed_sync_spoils_names) {
  PlayCounterexample({.without = [] {
    return Play({.prepare = [](Stage& s) {
      s.storage(0).Fail(Error(kSyncDirectory, kNewer, 3));
      s.storage(1).Fail(Lie(kSyncDirectory, kNewer));
    }});
  }});
}

}  // namespace
}  // namespace sealpoint::testing
