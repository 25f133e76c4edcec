// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/writers.pml: attempts 0 and 1 commit steps 2 and 3 in one
// directory beside step 1.
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

const std::string kDirectory = "run/both";
// The first sync of the directory is that behind the blob, the second that before the publication.
const std::string kSynced = "sync directory run/both";

struct Attempts {
  std::vector<Turn> turns{};
  Prepare prepare{};
  bool has_equal_ids = false;
  CrashDiskOptions disk{};
  Prepare after_attempt_1{};  // on its thread
};

Played Play(const Attempts& attempts) {
  static const CrashImage start = SeriesWith({1});
  Stage stage(2, start, attempts.disk);
  if (attempts.prepare) attempts.prepare(stage);
  AttemptId id;
  if (attempts.has_equal_ids) id = AttemptId::Random().value();
  std::vector<Status> results(2);
  const CrashActor attempt = [&](int actor) {
    const auto at = static_cast<std::size_t>(actor);
    results[at] = WriteAndCommitAlone(stage.disk(), at + 2, kDirectory, actor, id);
    if (actor == 1 && attempts.after_attempt_1) attempts.after_attempt_1(stage);
  };
  std::vector<Turn> turns = attempts.turns;
  turns.insert(turns.end(), {{.actor = 0}, {.actor = 1}});
  PlayTurns(stage.disk(), {attempt, attempt}, turns);
  Played played = stage.Finish(results, {2, 3});
  played.options.only_prefixes = true;
  return played;
}

TEST(WritersCounterexample, replacing_rename) {
  const auto play = [](bool publishes_exclusively) {
    return Play({.turns = {{.actor = 1, .after = kSynced, .nth = 2},
                           {.actor = 0, .after = "publish COMMIT"},
                           {.actor = 1, .after = "publish COMMIT"}},
                 .disk = {.publishes_exclusively = publishes_exclusively}});
  };
  PlayCounterexample({.without = [&] { return play(false); },
                      .real = [&] { return play(true); },
                      .reported = {kSuccess, kFailure}});
}

// Attempt 1 publishes when attempt 0 has looked for a marker and found none.
Played PublishSecond(const Prepare& prepare) {
  return Play({.turns = {{.actor = 1, .after = kSynced, .nth = 2},
                         {.actor = 0, .before = ".index"},
                         {.actor = 1, .after = "publish COMMIT"}},
               .prepare = prepare});
}

TEST(WritersCounterexample, exists_is_success) {
  const auto believe = [](Stage& s) { s.storage(0).Fail(Lie(kPublish, ".commit")); };
  PlayCounterexample({.without = [&] { return PublishSecond(believe); },
                      .real = [] { return PublishSecond({}); },
                      .reported = {kFailure, kSuccess}});
}

TEST(WritersCounterexample, any_marker_is_own) {
  PlayCounterexample({.without = [] { return PublishSecond([](Stage& s) { s.ShowOwnMarker(0); }); },
                      .real = [] { return PublishSecond({}); },
                      .reported = {kFailure, kSuccess}});
}

// Attempt 1 starts when the other has finished, and finds a marker.
TEST(WritersCounterexample, exists_is_failure) {
  const auto play = [](bool is_read_back) {
    return Play({.prepare = [&](Stage& s) {
      s.storage(0).Fail(LostReply(kPublish, ".commit", Code::kAlreadyExists));
      if (!is_read_back) s.HideMarker(0);
    }});
  };
  PlayCounterexample({.without = [&] { return play(false); },
                      .real = [&] { return play(true); },
                      .reported = {kSuccess, kFailure}});
}

// Attempt 1 fails while attempt 0 writes its index.
TEST(WritersCounterexample, removed_by_listing) {
  const auto play = [](bool removes_all) {
    return Play({.turns = {{.actor = 1, .after = "create *.blob"},
                           {.actor = 0, .after = "create *.index"},
                           {.actor = 1}},
                 .prepare = [&](Stage& s) {
                   s.storage(1).Fail(Error(kWrite, ".blob"));
                   const auto remove_all = [&s] { s.RemoveFiles(1, kDirectory); };
                   if (removes_all) s.Before(1, kRemove, ".blob", 1, remove_all);
                 }});
  };
  PlayCounterexample({.without = [&] { return play(true); },
                      .real = [&] { return play(false); },
                      .reported = {kSuccess, kFailure}});
}

// Attempt 1 comes to its index when that of attempt 0 is there under the same name.
Played MeetAtTheIndex(const Prepare& prepare) {
  return Play({.turns = {{.actor = 1, .after = kSynced},
                         {.actor = 0, .after = "close *.index"},
                         {.actor = 1, .before = ".commit"}},
               .prepare = prepare,
               .has_equal_ids = true});
}

// Any error but "exists" makes the index its own.
TEST(WritersCounterexample, found_file_removed) {
  const auto take_for_own = [](Stage& s) { s.storage(1).Fail(Error(kCreate, ".index")); };
  const auto play = [](const Prepare& prepare) {
    return Play({.turns = {{.actor = 1, .after = kSynced},
                           {.actor = 0, .after = "close *.index"},
                           {.actor = 1}},
                 .prepare = prepare,
                 .has_equal_ids = true});
  };
  PlayCounterexample({.without = [&] { return play(take_for_own); },
                      .real = [&] { return play({}); },
                      .reported = {kSuccess, kFailure}});
}

TEST(WritersCounterexample, created_over_a_file) {
  const auto create_over = [](Stage& s) {
    s.Before(1, kCreate, ".index", 1, [&s] {
      const auto directory = s.honest(1).OpenDirectory(kDirectory).value();
      for (const EntryInfo& entry : directory->List().value()) {
        if (entry.name.ends_with(".index")) static_cast<void>(directory->Remove(entry.name));
      }
    });
  };
  PlayCounterexample({.without = [&] { return MeetAtTheIndex(create_over); },
                      .real = [] { return MeetAtTheIndex({}); },
                      .reported = {kSuccess, kFailure}});
}

// The request of attempt 1 finds the unpublished marker of attempt 0, which is not durable yet.
TEST(WritersCounterexample, id_used_again) {
  PlayCounterexample({.without = [] {
    return Play({.turns = {{.actor = 1, .after = "report failure"},
                           {.actor = 0, .after = "close *.commit"},
                           {.actor = 1}},
                 .prepare = [](Stage& s) { s.storage(1).Fail(Error(kPublish, ".commit")); },
                 .has_equal_ids = true,
                 .after_attempt_1 = [](Stage& s) { s.PublishLate(1); }});
  }});
}

}  // namespace
}  // namespace sealpoint::testing
