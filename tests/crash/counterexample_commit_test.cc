// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/commit.pml: two ranks save step 2 into a series with step 1.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/crash/counterexample_play.h"
#include "tests/support/crash/runs.h"

namespace sealpoint::testing {
namespace {

using enum Outcome;
using enum StorageOp;

using Prepare = std::function<void(Stage&)>;
using PrepareRank = std::function<void(WatchedCommunicator&)>;

Played Save(const Prepare& prepare = {}, const PrepareRank& prepare_rank = {},
            const Prepare& afterwards = {}) {
  static const CrashImage start = SeriesWith({1});
  Stage stage(2, start);
  if (prepare) prepare(stage);
  const std::vector<Status> results = SaveTogether(stage.disk(), 2, prepare_rank);
  if (afterwards) afterwards(stage);
  return stage.Finish(results, {2, 2});
}

// Saves without these syncs, and with them.
Ways WithoutSyncs(const std::vector<NamedSync>& syncs) {
  return {.without =
              [syncs] {
                Played played = Save();
                played.options.is_lost = DroppingOf(played.history, syncs);
                return played;
              },
          .real = [] { return Save(); },
          .reported = {kSuccess, kSuccess}};
}

const std::string kSyncByWriter0 = "rank 0: sync directory run/step-*-*";
const std::string kSyncByWriter1 = "rank 1: sync directory run/step-*-*";
// Rank 0 syncs the directory behind its blob, before the publication and after it.
constexpr int kBefore = 2;
constexpr int kAfter = 3;

TEST(CommitCounterexample, no_blob_sync) {
  PlayCounterexample(WithoutSyncs({{"rank 0: sync *.blob"}, {"rank 1: sync *.blob"}}));
}

// The second sync finds the pages clean.
TEST(CommitCounterexample, sync_retried) {
  PlayCounterexample(
      {.without = [] { return Save([](Stage& s) { s.storage(0).Fail(Lie(kSyncFile, ".blob")); }); },
       .real = [] { return Save([](Stage& s) { s.storage(0).Fail(Error(kSyncFile, ".blob")); }); },
       .reported = {kFailure, kFailure}});
}

TEST(CommitCounterexample, no_blob_directory_sync) {
  PlayCounterexample(WithoutSyncs({{kSyncByWriter0, 1}, {kSyncByWriter1, 1}}));
}

TEST(CommitCounterexample, no_index_sync) {
  PlayCounterexample(WithoutSyncs({{"rank 0: sync *.index"}}));
}

TEST(CommitCounterexample, no_marker_sync) {
  PlayCounterexample(WithoutSyncs({{"rank 0: sync *.commit"}}));
}

TEST(CommitCounterexample, no_sync_before_publication) {
  PlayCounterexample(WithoutSyncs({{kSyncByWriter0, kBefore}}));
}

TEST(CommitCounterexample, no_sync_after_publication) {
  PlayCounterexample(WithoutSyncs({{kSyncByWriter0, kAfter}}));
}

// Whatever the committer does later has not happened yet when the outcome is reported.
TEST(CommitCounterexample, reported_before_sync) {
  PlayCounterexample(WithoutSyncs({{kSyncByWriter0, kAfter}}));
}

// What rank 1 syncs later has not happened when rank 0 publishes.
TEST(CommitCounterexample, agreed_before_sync) {
  PlayCounterexample(WithoutSyncs({{"rank 1: sync *.blob"}, {kSyncByWriter1, 1}}));
}

// The second sync takes the names as written.
TEST(CommitCounterexample, directory_sync_retried) {
  const auto save = [](const StorageFault& fault) {
    return Save([&](Stage& s) { s.storage(0).Fail(fault); });
  };
  PlayCounterexample({.without = [&] { return save(Lie(kSyncDirectory, "run/step-", kAfter)); },
                      .real = [&] { return save(Error(kSyncDirectory, "run/step-", kAfter)); },
                      .reported = {kUnknown, kUnknown}});
}

TEST(CommitCounterexample, not_read_back) {
  const auto save = [](bool is_read_back) {
    return Save([&](Stage& s) {
      s.storage(0).Fail(LostReply(kPublish, ".commit"));
      if (!is_read_back) s.HideMarker(0);
    });
  };
  PlayCounterexample({.without = [&] { return save(false); },
                      .real = [&] { return save(true); },
                      .reported = {kSuccess, kSuccess}});
}

// The request takes effect after the second look. It has no effect if its source is gone.
TEST(CommitCounterexample, not_removed_before_second_look) {
  const auto save = [](bool is_removed) {
    return Save([&](Stage& s) {
      s.storage(0).Fail(Error(kPublish, ".commit"));
      if (!is_removed) s.storage(0).Fail(Lie(kRemove, ".commit"));
      s.Before(0, kRemove, ".commit", 2, [&s] { s.PublishLate(0); });
    });
  };
  PlayCounterexample({.without = [&] { return save(false); },
                      .real = [&] { return save(true); },
                      .reported = {kFailure, kFailure}});
}

// The request takes effect between the first look and the removal.
TEST(CommitCounterexample, one_look_only) {
  const auto save = [](bool looks_again) {
    return Save([&](Stage& s) {
      s.storage(0).Fail(Error(kPublish, ".commit"));
      if (!looks_again) s.HideMarker(0);
      s.Before(0, kRemove, ".commit", 1, [&s] { s.PublishLate(0); });
    });
  };
  PlayCounterexample({.without = [&] { return save(false); },
                      .real = [&] { return save(true); },
                      .reported = {kSuccess, kSuccess}});
}

// A rank that fails takes part to the end: without it the others would wait for ever, which no
// storage shows.
Played SaveOfWhichARankFails() {
  Played played = Save([](Stage& s) { s.storage(0).Fail(Error(kWrite, ".blob")); });
  for (const Status& result : played.results) {
    EXPECT_EQ(result.code(), Code::kIo) << "the cause, not a rank that left: " << result.ToString();
  }
  EXPECT_EQ(played.end.folders.size(), 3u) << "root, series, step 1: the new one goes at last";
  return played;
}

TEST(CommitCounterexample, failed_rank_returns_early) {
  PlayCounterexample({.real = SaveOfWhichARankFails, .reported = {kFailure, kFailure}});
}

TEST(CommitCounterexample, last_meeting_skipped) {
  PlayCounterexample({.real = SaveOfWhichARankFails, .reported = {kFailure, kFailure}});
}

// Rank 1 is late: when rank 0 publishes, its blob has its length and not its bytes. The library
// waits for it.
TEST(CommitCounterexample, published_before_agreed) {
  const auto save_early = [] {
    return Save([](Stage& s) {
      s.storage(1).SetWriteHook([](std::string_view name, WriteRequest& request) {
        if (name.ends_with(".blob")) request.data.assign(request.data.size(), std::byte{0});
      });
    });
  };
  const auto save_late = [] {
    return Save([](Stage& s) {
      s.Before(1, kSyncFile, ".blob", 1, [&s] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const CrashHistory history = s.disk().history();
        EXPECT_EQ(history.Find("publish COMMIT"), history.ops.size());
      });
    });
  };
  PlayCounterexample({.without = save_early, .real = save_late, .reported = {kSuccess, kSuccess}});
}

// Rank 1's communicator fails when rank 0 has all it needs; rank 1 believes that nobody publishes.
Ways LostRank(const PrepareRank& lose) {
  return {
      .without =
          [lose] {
            return Save(
                [](Stage& s) { s.Before(0, kCreate, ".index", 1, [&s] { s.RemoveOwnBlobs(1); }); },
                lose);
          },
      .real = [lose] { return Save({}, lose); },
      .reported = {kSuccess, kUnknown}};
}

// Loses the rank in the gathers of free space and of the summaries.
TEST(CommitCounterexample, lost_after_summary_is_failure) {
  PlayCounterexample(LostRank([](WatchedCommunicator& comm) {
    if (comm.rank() == 1) comm.BreakAfterGather(2);
  }));
}

// Loses the rank in the broadcasts of the attempt and of the verdict.
TEST(CommitCounterexample, lost_verdict_is_failure) {
  PlayCounterexample(LostRank([](WatchedCommunicator& comm) {
    if (comm.rank() == 1) comm.BreakAfterBroadcast(2);
  }));
}

TEST(CommitCounterexample, removed_after_unknown) {
  const auto save = [](const Prepare& afterwards) {
    return Save([](Stage& s) { s.storage(0).Fail(Error(kSyncDirectory, "run/step-", kAfter)); }, {},
                afterwards);
  };
  PlayCounterexample({.without = [&] { return save([](Stage& s) { s.RemoveOwnBlobs(0); }); },
                      .real = [&] { return save({}); },
                      .reported = {kUnknown, kUnknown}});
}

}  // namespace
}  // namespace sealpoint::testing
