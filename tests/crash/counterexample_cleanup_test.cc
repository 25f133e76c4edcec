// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/cleanup.pml: rank 0 (actor 0) is slow and commits the blobs of
// step 2, which are there; actor 1 cleans up. What rank 1 does in the model has been done.
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

using Prepare = std::function<void(Stage&)>;

struct CleanUp {
  std::vector<Turn> turns{};
  Prepare prepare{};
  // What the cleaner does then, in the attempt's directory.
  std::function<void(Stage&, const std::string& directory)> afterwards{};
  CrashDiskOptions disk{};
};

Played Play(const CleanUp& clean_up) {
  static const CrashImage start = SeriesWithAttempt({1}, 2);
  static const std::string name = NameOfStep(start, 2);
  const std::string directory = JoinPath(kCrashSeries, name);
  Stage stage(2, start, clean_up.disk);
  if (clean_up.prepare) clean_up.prepare(stage);
  std::vector<Status> results(2);
  const CrashActor writer = [&](int actor) {
    results[0] = CommitWhatIsThere(stage.disk(), 2, directory, actor);
  };
  const CrashActor cleaner = [&](int actor) {
    results[1] = OpenCrashSeries(stage.disk(), actor).RemoveUncommitted(name).status();
    if (clean_up.afterwards) clean_up.afterwards(stage, directory);
  };
  std::vector<Turn> turns = clean_up.turns;
  turns.insert(turns.end(), {{.actor = 0}, {.actor = 1}});
  PlayTurns(stage.disk(), {writer, cleaner}, turns);
  Played played = stage.Finish(results, {2, 0});
  played.options.only_prefixes = true;
  return played;
}

// The whole clean-up falls between the check of the blobs and the writing of the index.
const std::vector<Turn> kCleanedAfterCheck{{.actor = 0, .before = ".index"}, {.actor = 1}};
// The cleaner finds no marker, and then there is one.
const std::vector<Turn> kCommittedAfterScan{
    {.actor = 1, .before = ".commit"}, {.actor = 0, .after = "publish COMMIT"}, {.actor = 1}};

// The storage answers that the void marker was published.
void BelieveInTheVoid(Stage& stage) { stage.storage(1).Fail(Lie(kPublish, ".commit")); }

TEST(CleanupCounterexample, no_void_marker) {
  PlayCounterexample(
      {.without = [] { return Play({.turns = kCleanedAfterCheck, .prepare = BelieveInTheVoid}); },
       .real = [] { return Play({.turns = kCleanedAfterCheck}); },
       .reported = {kFailure, kSuccess}});
}

TEST(CleanupCounterexample, void_marker_last) {
  const auto void_it = [](Stage& s, const std::string& directory) {
    EXPECT_EQ(PublishVoidMarker(s.honest(1), directory).code(), Code::kAlreadyExists);
  };
  PlayCounterexample({.without =
                          [&] {
                            return Play({.turns = {{.actor = 0, .before = ".index"},
                                                   {.actor = 1, .after = "remove *.blob"},
                                                   {.actor = 0}},
                                         .prepare = BelieveInTheVoid,
                                         .afterwards = void_it});
                          },
                      .real = [] { return Play({.turns = kCleanedAfterCheck}); },
                      .reported = {kFailure, kSuccess}});
}

// The replaced marker can come back if the cleaner's sync covers its own names only. On the crash
// disk it would cover the replacement, so that the sync is taken away.
TEST(CleanupCounterexample, void_replaces) {
  PlayCounterexample({.without =
                          [] {
                            Played played = Play({.turns = kCommittedAfterScan,
                                                  .disk = {.publishes_exclusively = false}});
                            played.options.is_lost = DroppingOf(
                                played.history, {{"rank 1: sync directory run/step-*-*"}});
                            return played;
                          },
                      .real = [] { return Play({.turns = kCommittedAfterScan}); },
                      .reported = {kSuccess, kFailure}});
}

TEST(CleanupCounterexample, taken_name_ignored) {
  PlayCounterexample(
      {.without = [] { return Play({.turns = kCommittedAfterScan, .prepare = BelieveInTheVoid}); },
       .real = [] { return Play({.turns = kCommittedAfterScan}); },
       .reported = {kSuccess, kFailure}});
}

TEST(CleanupCounterexample, void_error_ignored) {
  const auto fail = [](Stage& s) { s.storage(1).Fail(Error(kPublish, ".commit")); };
  PlayCounterexample(
      {.without = [] { return Play({.turns = kCleanedAfterCheck, .prepare = BelieveInTheVoid}); },
       .real = [&] { return Play({.turns = kCleanedAfterCheck, .prepare = fail}); },
       .reported = {kSuccess, kFailure}});
}

// Rank 0 writes its index before the directory could go, too.
TEST(CleanupCounterexample, void_removed_at_once) {
  const std::vector<Turn> between_removals{{.actor = 0, .before = ".index"},
                                           {.actor = 1, .after = "remove COMMIT"},
                                           {.actor = 0, .after = "publish COMMIT"}};
  const auto remove_void = [](Stage& s, const std::string& directory) {
    const auto opened = s.honest(1).OpenDirectory(directory).value();
    EXPECT_TRUE(opened->Remove("COMMIT").ok());
    EXPECT_TRUE(opened->Sync().ok());
  };
  PlayCounterexample(
      {.without = [&] { return Play({.turns = between_removals, .afterwards = remove_void}); },
       .real = [&] { return Play({.turns = between_removals}); },
       .reported = {kFailure, kSuccess}});
}

TEST(CleanupCounterexample, void_taken_for_own) {
  const std::vector<Turn> voided_after_check{{.actor = 0, .before = ".index"},
                                             {.actor = 1, .after = "publish COMMIT"}};
  const auto believe = [](Stage& s) { s.ShowOwnMarker(0); };
  PlayCounterexample(
      {.without = [&] { return Play({.turns = voided_after_check, .prepare = believe}); },
       .real = [&] { return Play({.turns = voided_after_check}); },
       .reported = {kFailure, kSuccess}});
}

TEST(CleanupCounterexample, committed_cleaned_up) {
  const std::vector<Turn> committed{{.actor = 0, .after = "publish COMMIT"}, {.actor = 1}};
  // A marker that is not found but listed is asked for once more, so that no false answer hides it.
  const auto do_not_ask = [](Stage& s, const std::string& directory) {
    s.RemoveFiles(1, directory);
  };
  PlayCounterexample(
      {.without = [&] { return Play({.turns = committed, .afterwards = do_not_ask}); },
       .real = [&] { return Play({.turns = committed}); },
       .reported = {kSuccess, kFailure}});
}

// The second clean-up does not wait until the writer is gone.
TEST(CleanupCounterexample, writer_alive) {
  PlayCounterexample({.without = [] {
    return Play({.turns = {{.actor = 0, .before = ".index"},
                           {.actor = 1, .after = "remove COMMIT"},
                           {.actor = 0, .after = "publish COMMIT"}},
                 .afterwards = [](Stage& s, const std::string& directory) {
                   const Series series = OpenCrashSeries(s.disk(), 1);
                   EXPECT_TRUE(
                       series.RemoveUncommitted(directory.substr(kCrashSeries.size() + 1)).ok());
                 }});
  }});
}

}  // namespace
}  // namespace sealpoint::testing
