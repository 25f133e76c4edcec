// SPDX-License-Identifier: Apache-2.0
//
// Processes that know nothing of each other work in one directory: every order of their operations
// within a bound, readers at each point, and a crash at each point.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/crash/expect_crash.h"
#include "tests/support/crash/runs.h"
#include "tests/support/crash/schedule.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

const std::string kDirectory = "run/both";

struct Totals {
  std::uint64_t schedules = 0;
  std::uint64_t looks = 0;  // of readers between two operations
  CrashCounts crashes{};
};

void Record(const Totals& totals, const std::string& row, const std::string& title) {
  auto counts = totals.crashes.ForResults();
  counts.insert(counts.begin(), {{"schedules", totals.schedules}, {"looks", totals.looks}});
  RecordRun({.row = row,
             .title = title,
             .command = "ctest --test-dir build/dev -R crash.interleaving",
             .counts = counts,
             .exact = false});
}

// Blobs of two writers, of steps 2 and 3, in one directory beside an older checkpoint.
struct TwoAttempts {
  CrashImage image{};
  std::vector<std::vector<BlobSummary>> summaries{};  // by writer
  ParentRef parent{};

  static TwoAttempts Make() {
    CrashDisk disk(1, SeriesWith({1}));
    EXPECT_TRUE(disk.View(0)->CreateDirectories(kDirectory).ok());
    TwoAttempts made;
    for (const std::uint64_t step : {2u, 3u}) {
      made.summaries.push_back(WriteBlobs(disk, step, kDirectory));
    }
    made.image = disk.Now();
    const SeriesEntry older = OpenCrashSeries(disk).Newest().value().entry;
    made.parent = {older.attempt, older.sequence};
    return made;
  }
};

// Actor i commits step i + 2; all in the same directory.
struct Committers {
  const TwoAttempts& attempts;
  AttemptId attempt{};  // of both; zero: each its own
  std::vector<Status> results{2};

  CrashActor On(CrashDisk& disk) {
    return [this, &disk](int actor) {
      const auto at = static_cast<std::size_t>(actor);
      const auto committed = Commit(*disk.View(actor), kDirectory,
                                    {.attempt = attempt, .step = at + 2, .parent = attempts.parent},
                                    attempts.summaries[at]);
      results[at] = committed.status();
      disk.Tell(actor, committed.status());
    };
  }
};

// A step whose success was reported is there; one whose failure was reported is not.
CrashPromise PromiseTo(const std::vector<std::optional<bool>>& told_success) {
  CrashPromise promise{.there = {1}};
  for (std::size_t actor = 0; actor < told_success.size(); ++actor) {
    if (!told_success[actor]) promise.perhaps.push_back(actor + 2);
    if (told_success[actor].value_or(false)) promise.there.push_back(actor + 2);
  }
  return promise;
}

CrashPromise PromiseAt(const CrashHistory& history, const CrashCut& cut) {
  std::vector<std::optional<bool>> reported(2);
  for (const CrashOp& op : history.ops) {
    const auto actor = static_cast<std::size_t>(op.actor);
    const bool is_in = op.clock[actor] <= cut.done[actor];
    if (op.kind == CrashOpKind::kReported && is_in) reported[actor] = op.name == kReportedSuccess;
  }
  return PromiseTo(reported);
}

// Checks one schedule: what programs see after each operation, and what crashes leave.
class Race {
 public:
  Race(CrashDisk& disk, std::string& wrong, Totals& totals)
      : disk_(disk), wrong_(wrong), totals_(totals) {}

  void Look() {
    if (disk_.op_count() == seen_) return;
    seen_ = disk_.op_count();
    ++totals_.looks;
    Note(checker_.Check(disk_.Now(), PromiseTo({disk_.told_success(0), disk_.told_success(1)})));
  }
  void Crash() {
    const CrashHistory history = disk_.history();
    totals_.crashes +=
        ForEachCrash(history, {.contents = CrashContents::kUniform, .only_prefixes = true},
                     [&](const CrashImage& image, const CrashCut& cut) {
                       Note(checker_.Check(image, PromiseAt(history, cut)));
                       return wrong_.empty();
                     });
  }
  void Note(const std::string& found) {
    if (wrong_.empty()) wrong_ = found;
  }

 private:
  CrashDisk& disk_;
  std::string& wrong_;
  Totals& totals_;
  CrashChecker checker_;
  std::size_t seen_ = 0;
};

// The first fault over all schedules; "" if there is none.
std::string RaceCommitters(const CrashDiskOptions& disk_options, const AttemptId& attempt,
                           const ScheduleOptions& options, Totals& totals) {
  const TwoAttempts attempts = TwoAttempts::Make();
  std::string wrong;
  totals.schedules += ForEachSchedule(options, [&](const SchedulePlayer& play) {
    CrashDisk disk(2, attempts.image, disk_options);
    Race race(disk, wrong, totals);
    Committers committers{.attempts = attempts, .attempt = attempt};
    const CrashActor body = committers.On(disk);
    play({.disk = disk, .actors = {body, body}, .at_rest = [&] { race.Look(); }});
    const auto& results = committers.results;
    const std::size_t winner = results[0].ok() ? 0 : 1;
    if (results[0].ok() == results[1].ok()) race.Note("not exactly one committed");
    if (results[1 - winner].code() != Code::kAlreadyExists) {
      race.Note(results[1 - winner].ToString());
    }
    race.Crash();
    return wrong.empty();
  });
  return wrong;
}

bool TouchesTheMarker(std::string_view name) { return name == "COMMIT"; }

// Their files have different names: only what concerns COMMIT can be in each other's way, and of
// that every order is tried.
TEST(CrashInterleaving, OneOfTwoCommittersWins) {
  Totals totals;
  EXPECT_EQ(RaceCommitters({}, {}, {.preemptions_max = 99, .is_choice = TouchesTheMarker}, totals),
            "");
  EXPECT_EQ(RaceCommitters({}, {}, {.preemptions_max = 2}, totals), "");
  Record(totals, "crash-two-committers", "Orders of two committers in one directory");
}

// A generator of random ids that repeats itself: the files collide too.
TEST(CrashInterleaving, OneOfTwoCommittersWithTheSameAttemptWins) {
  Totals totals;
  const AttemptId attempt = AttemptId::Random().value();
  EXPECT_EQ(RaceCommitters({}, attempt, {.preemptions_max = 2}, totals), "");
}

// If a publication replaces the marker, the same race is lost: the tests can tell the difference.
TEST(CrashInterleaving, PublicationThatReplacesIsFoundOut) {
  Totals totals;
  EXPECT_EQ(RaceCommitters({.publishes_exclusively = false}, {},
                           {.preemptions_max = 99, .is_choice = TouchesTheMarker}, totals),
            "step 3 is gone");
}

// A slow writer (actor 0), which commits existing blobs or begins with writing them, and a process
// that cleans up its attempt (actor 1).
std::string RaceCleanUp(const CrashDiskOptions& disk_options, bool writes_blobs,
                        int preemptions_max, Totals& totals) {
  const CrashImage start = writes_blobs ? SeriesWith({1}) : SeriesWithAttempt({1}, 2);
  const std::string name = writes_blobs ? "slow" : NameOfStep(start, 2);
  const std::string directory = JoinPath(kCrashSeries, name);
  std::string wrong;
  totals.schedules +=
      ForEachSchedule({.preemptions_max = preemptions_max}, [&](const SchedulePlayer& play) {
        CrashDisk disk(2, start, disk_options);
        Race race(disk, wrong, totals);
        Status committed;
        Status removed;
        const CrashActor writer = [&](int actor) {
          committed = writes_blobs ? WriteAndCommitAlone(disk, 2, directory, actor)
                                   : CommitWhatIsThere(disk, 2, directory, actor);
        };
        const CrashActor cleaner = [&](int actor) {
          removed = OpenCrashSeries(disk, actor).RemoveUncommitted(name).status();
        };
        play({.disk = disk, .actors = {writer, cleaner}, .at_rest = [&] { race.Look(); }});
        if (committed.ok() && removed.ok()) race.Note("committed and cleaned up");
        race.Crash();
        return wrong.empty();
      });
  return wrong;
}

TEST(CrashInterleaving, CleanUpAgainstASlowWriter) {
  Totals totals;
  EXPECT_EQ(RaceCleanUp({}, false, 2, totals), "");
  EXPECT_EQ(RaceCleanUp({}, true, 1, totals), "");
  Record(totals, "crash-cleanup-race", "Orders of a clean-up and a slow writer");
}

TEST(CrashInterleaving, VoidMarkerThatIsReplacedIsFoundOut) {
  Totals totals;
  EXPECT_NE(RaceCleanUp({.publishes_exclusively = false}, false, 2, totals), "");
}

// A reader (actor 1) whose operations fall anywhere between those of actor 0. It gets every byte
// right or an error.
std::uint64_t RaceReader(const CrashImage& start, const std::string& directory,
                         const std::function<void(CrashDisk&)>& other) {
  bool is_read = false;
  bool is_refused = false;
  const std::uint64_t schedules =
      ForEachSchedule({.preemptions_max = 2}, [&](const SchedulePlayer& play) {
        CrashDisk disk(2, start);
        Status read;
        play({.disk = disk,
              .actors = {[&](int) { other(disk); },
                         [&](int actor) { read = ReadEverything(disk.View(actor), directory); }}});
        EXPECT_NE(read.code(), Code::kInternal) << read.ToString();
        (read.ok() ? is_read : is_refused) = true;
        return !::testing::Test::HasFailure();
      });
  EXPECT_TRUE(is_read);
  EXPECT_TRUE(is_refused);
  return schedules;
}

TEST(CrashInterleaving, ReaderDuringACommitAndADeletionGetsAllOrAnError) {
  const std::uint64_t commits = RaceReader(SeriesWith({1}), "run/new", [](CrashDisk& disk) {
    EXPECT_TRUE(WriteAndCommitAlone(disk, 2, "run/new").ok());
  });
  const CrashImage two = SeriesWith({1, 2});
  const std::string name = NameOfStep(two, 1);
  const std::uint64_t deletions =
      RaceReader(two, JoinPath(kCrashSeries, name),
                 [&](CrashDisk& disk) { EXPECT_TRUE(OpenCrashSeries(disk).Delete(name).ok()); });
  RecordRun({.row = "crash-reader-race",
             .title = "Orders of a reader and a commit, and of a reader and a deletion",
             .command = "ctest --test-dir build/dev -R crash.interleaving",
             .counts = {{"with a commit", commits}, {"with a deletion", deletions}},
             .exact = false});
}

}  // namespace
}  // namespace sealpoint::testing
