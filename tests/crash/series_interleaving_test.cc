// SPDX-License-Identifier: Apache-2.0
//
// Processes that list a series, resume from it and read, beside others that save, delete and clean
// up: orders of their operations within a bound, orders at random, and a crash at each point. An
// answer is right if it was right at some moment of the call.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lib/format/constants.h"
#include "lib/series/series_scan.h"
#include "tests/crash/expect_crash.h"
#include "tests/crash/series_onlooker.h"
#include "tests/support/crash/runs.h"
#include "tests/support/crash/schedule.h"
#include "tests/support/process/results.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kSlowStep = 3;  // the blobs of this attempt are there
constexpr std::uint64_t kDeadStep = 9;  // and of this one, which nobody goes on with

const std::string kSlowName = "attempt";  // before the others in the order of names
const std::string kDeadName = "dead";

// Steps 1 and 2 are committed.
struct Start {
  CrashImage image{};
  std::map<std::string, std::uint64_t> steps{};  // by the name of the directory

  static Start Make() {
    Start start{.image = SeriesWith({1, 2})};
    for (const std::uint64_t step : {1u, 2u}) start.steps[NameOfStep(start.image, step)] = step;
    const auto add = [&](const std::string& name, std::uint64_t step) {
      CrashDisk disk(1, start.image);
      const std::string directory = JoinPath(kCrashSeries, name);
      EXPECT_TRUE(disk.View(0)->CreateDirectories(directory).ok());
      WriteBlobs(disk, step, directory);
      start.image = disk.Now();
      start.steps[name] = step;
    };
    add(kSlowName, kSlowStep);
    add(kDeadName, kDeadStep);
    return start;
  }
  static const Start& Get() {
    static const Start start = Make();
    return start;
  }
  static const std::string& NameOf(std::uint64_t step) {
    const auto& steps = Get().steps;
    return std::find_if(steps.begin(), steps.end(),
                        [&](const auto& one) { return one.second == step; })
        ->first;
  }
};

enum class Question : std::uint8_t { kNewest, kList, kPreflight };
constexpr Question kQuestions[] = {Question::kNewest, Question::kList, Question::kPreflight};

// Whether the operation that this thread begins is one that others can notice, or notices others.
thread_local bool matters = true;

// For actors that save, delete and clean up, only what they make, publish and remove matters: what
// they read concerns no other actor. Actor 0 asks.
bool Matters(int actor, StorageOp op, std::string_view name) {
  if (actor == 0 || op == StorageOp::kCreateDirectories || op == StorageOp::kRemoveDirectory) {
    return true;
  }
  const bool is_index = name.ends_with(".index");
  return op == StorageOp::kPublish ||
         (op == StorageOp::kRemove && (is_index || name == internal::format::kMarkerName));
}

// One series with all who work in it, and what was wrong first.
class World {
 public:
  explicit World(int actors) : disk_(actors, Start::Get().image), onlooker_(disk_) {
    for (int actor = 0; actor < actors; ++actor) {
      const auto view = std::make_shared<FailingStorage>(disk_.View(actor));
      view->SetHook(
          [actor](StorageOp op, std::string_view name) { matters = Matters(actor, op, name); });
      disk_.SetView(actor, view);
    }
  }

  CrashDisk& disk() { return disk_; }
  std::uint64_t answers() const { return answers_; }
  void Look() {
    onlooker_.Look();
    Note(onlooker_.wrong());
  }
  void Note(const std::string& found) {
    const std::lock_guard lock(mutex_);
    if (wrong_.empty()) wrong_ = found;
  }
  std::string wrong() const {
    const std::lock_guard lock(mutex_);
    return wrong_;
  }

  void Ask(int actor, Question question) {
    if (question == Question::kNewest) {
      static_cast<void>(Resume(actor));
      return;
    }
    const std::size_t since = onlooker_.Look();
    const auto detail = question == Question::kList ? internal::series::SeriesDetail::kFiles
                                                    : internal::series::SeriesDetail::kMarkers;
    const auto listing =
        internal::series::ScanSeries(*disk_.View(actor), std::string(kCrashSeries), detail);
    if (!listing.ok()) return Note("listing: " + listing.error().ToString());
    const SeriesEntry* const newest = listing->newest();
    Judge(newest == nullptr ? AttemptId{} : newest->attempt, since);
    for (const SeriesEntry& entry : listing->entries) {
      if (entry.verdict == Verdict::kUnreadable || entry.verdict == Verdict::kCorrupt) {
        Note(entry.problem.ToString());
      }
      const bool is_committed = entry.verdict == Verdict::kCommitted;
      if (is_committed && !onlooker_.WasCommitted(entry.attempt, since)) {
        Note("listed and not committed: " + entry.name);
      }
    }
  }
  // What it resumes from is read whole, or was deleted meanwhile.
  void Read(int actor) {
    const auto entry = Resume(actor);
    if (!entry) return;
    const Status read = ReadEverything(disk_.View(actor), entry->path);
    if (read.ok()) return;
    onlooker_.Look();
    const bool is_deleted = !onlooker_.IsCommitted(entry->attempt);
    if (read.code() == Code::kInternal || !is_deleted) Note("reading: " + read.ToString());
  }
  void Save(int actor, std::uint64_t step) {
    const std::size_t since = onlooker_.Look();
    const Status saved = SaveAlone(disk_, step, actor);
    if (!saved.ok()) return Note("saving: " + saved.ToString());
    onlooker_.Look();
    if (!onlooker_.WasParentNewest(step, since)) Note("the parent never was the newest");
  }
  void CommitSlow(int actor) {
    const Status committed =
        CommitWhatIsThere(disk_, kSlowStep, JoinPath(kCrashSeries, kSlowName), actor);
    if (!committed.ok()) Note("committing: " + committed.ToString());
  }
  // Refused as long as it is the newest.
  void Delete(int actor, std::uint64_t step) {
    const Status deleted = OpenCrashSeries(disk_, actor).Delete(Start::NameOf(step));
    if (!deleted.ok() && deleted.code() != Code::kInvalidArgument) {
      Note("deleting: " + deleted.ToString());
    }
  }
  // Refused at a fork.
  void Prune(int actor) {
    const PruneReport report = OpenCrashSeries(disk_, actor).Prune({.keep_last = 2});
    if (!report.status.ok() && report.status.place().rule != "R-SER-15")
      Note("pruning: " + report.status.ToString());
  }
  void CleanUp(int actor) {
    const auto removed = OpenCrashSeries(disk_, actor).RemoveUncommitted(kDeadName);
    if (!removed.ok()) Note("cleaning up: " + removed.error().ToString());
  }

 private:
  std::optional<SeriesEntry> Resume(int actor) {
    const std::size_t since = onlooker_.Look();
    const auto point = OpenCrashSeries(disk_, actor).Newest();
    if (!point.ok()) {
      Note("resuming: " + point.error().ToString());
      return std::nullopt;
    }
    Judge(point->entry.attempt, since);
    return point->entry;
  }
  void Judge(const AttemptId& newest, std::size_t since) {
    if (!onlooker_.WasNewest(newest, since)) Note("it never was the newest: " + newest.ToHex());
    const std::lock_guard lock(mutex_);
    ++answers_;
  }

  CrashDisk disk_;
  SeriesOnlooker onlooker_;
  mutable std::mutex mutex_;
  std::string wrong_;
  std::uint64_t answers_ = 0;
};

// What a crash must leave, by what had been done and reported until then.
class Promises {
 public:
  explicit Promises(const CrashHistory& history) : history_(history) {
    const CrashNodeId series = history.nodes[0].entries.at(std::string(kCrashSeries));
    for (const auto& [name, node] : history.nodes[static_cast<std::size_t>(series)].entries) {
      steps_[node] = Start::Get().steps.at(name);
    }
    for (const CrashOp& op : history.ops) {
      if (op.kind != CrashOpKind::kMakeDirectory || op.directory != series) continue;
      steps_[op.node] = std::stoull(op.name.substr(std::string("step-").size()));
    }
  }

  CrashPromise At(const CrashCut& cut) const {
    std::set<std::uint64_t> there{1, 2};
    std::set<std::uint64_t> perhaps;
    std::map<int, std::uint64_t> published;  // last, by actor
    for (const CrashOp& op : history_.ops) {
      const auto actor = static_cast<std::size_t>(op.actor);
      if (op.clock[actor] > cut.done[actor]) continue;
      const bool is_marker = op.name == internal::format::kMarkerName;
      if (is_marker && (op.kind == CrashOpKind::kLink || op.kind == CrashOpKind::kRename)) {
        perhaps.insert(published[op.actor] = steps_.at(op.directory));
      } else if (is_marker && op.kind == CrashOpKind::kRemove) {
        there.erase(steps_.at(op.directory));
        perhaps.insert(steps_.at(op.directory));
      } else if (op.kind == CrashOpKind::kReported && published.contains(op.actor)) {
        Report(op, published.at(op.actor), there, perhaps);
      }
    }
    perhaps.erase(kDeadStep);
    return {.there = {there.begin(), there.end()}, .perhaps = {perhaps.begin(), perhaps.end()}};
  }

 private:
  // Nothing is promised of what somebody has begun to delete.
  void Report(const CrashOp& report, std::uint64_t step, std::set<std::uint64_t>& there,
              std::set<std::uint64_t>& perhaps) const {
    const bool is_being_deleted = std::any_of(history_.ops.data(), &report, [&](const CrashOp& op) {
      return op.kind == CrashOpKind::kRemove && op.name == internal::format::kMarkerName &&
             steps_.at(op.directory) == step;
    });
    if (report.name != kReportedSuccess || is_being_deleted) return;
    perhaps.erase(step);
    there.insert(step);
  }

  const CrashHistory& history_;
  std::map<CrashNodeId, std::uint64_t> steps_;
};

// Deletions by one process rest on syncs of names that others made: one machine, on which the order
// of the run is the only one.
const CrashOptions kCrash{
    .contents = CrashContents::kUniform, .reach = SyncReach::kEverybodys, .only_prefixes = true};

struct Totals {
  std::uint64_t schedules = 0;
  std::uint64_t answers = 0;
  CrashCounts crashes{};
  std::uint64_t images = 0;  // after a crash, drawn at random
  std::string wrong{};       // the first
};

// Orders that differ only in who reads when leave the same after a crash: each is tried once.
class Crashes {
 public:
  void TryAll(const CrashHistory& history, Totals& totals) {
    std::string key;
    for (const CrashOp& op : history.ops) {
      key += op.Describe() + " in " + std::to_string(op.directory) + "\n";
    }
    if (!seen_.insert(HashOf(AsBytes(key))).second) return;
    const Promises promises(history);
    totals.crashes +=
        ForEachCrash(history, kCrash, [&](const CrashImage& image, const CrashCut& cut) {
          return Accept(image, cut, promises, totals);
        });
  }
  void TrySome(const CrashHistory& history, std::uint64_t count, std::mt19937_64& random,
               Totals& totals) {
    const Promises promises(history);
    const std::vector<CrashCut> cuts = AllCuts(history, true);
    for (std::uint64_t i = 0; i < count && totals.wrong.empty(); ++i, ++totals.images) {
      CrashChoice choice{.names = std::vector<bool>(64), .sectors = std::vector<std::uint8_t>(64)};
      for (std::size_t n = 0; n < 64; ++n) {
        choice.names[n] = random() % 2 == 0;
        choice.sectors[n] = static_cast<std::uint8_t>(random() % 4);
      }
      const CrashCut& cut = cuts[random() % cuts.size()];
      Accept(MakeImage(history, cut, kCrash, choice), cut, promises, totals);
    }
  }

 private:
  bool Accept(const CrashImage& image, const CrashCut& cut, const Promises& promises,
              Totals& totals) {
    std::string wrong = checker_.Check(image, promises.At(cut));
    const Series series(std::string(kCrashSeries), StorageOf(image));
    if (wrong.empty() && !series.Newest().ok()) wrong = "no checkpoint is left";
    if (wrong.empty()) return true;
    totals.wrong = wrong + "\nafter a crash after " +
                   (cut.last == nullptr ? "nothing" : cut.last->Describe()) + "\n" +
                   image.Describe();
    return false;
  }

  std::set<std::uint64_t> seen_;
  CrashChecker checker_;
};

using Script = std::function<void(World&, int actor)>;

std::vector<CrashActor> ActorsOf(World& world, const std::vector<Script>& scripts) {
  std::vector<CrashActor> actors;
  for (const Script& script : scripts) {
    actors.push_back([&world, &script](int actor) { script(world, actor); });
  }
  return actors;
}

void Add(const World& world, Totals& totals) {
  totals.answers += world.answers();
  totals.wrong = world.wrong();
}

void RunAll(const std::vector<Script>& scripts, int preemptions_max, Crashes& crashes,
            Totals& totals) {
  const ScheduleOptions options{.preemptions_max = preemptions_max,
                                .is_choice = [](std::string_view) { return matters; }};
  totals.schedules += ForEachSchedule(options, [&](const SchedulePlayer& play) {
    World world(static_cast<int>(scripts.size()));
    play({.disk = world.disk(), .actors = ActorsOf(world, scripts), .at_rest = [&] {
            world.Look();
          }});
    Add(world, totals);
    if (totals.wrong.empty()) crashes.TryAll(world.disk().history(), totals);
    return totals.wrong.empty();
  });
}

Script Asking(Question question) {
  return [question](World& world, int actor) { world.Ask(actor, question); };
}

void CleanUpTwice(World& world, int actor) {
  for (int i = 0; i < 2; ++i) world.CleanUp(actor);
}

// Those who work beside the lister, who is actor 0.
struct Others {
  std::vector<Script> scripts{};
  int preemptions_max = 2;
};

std::vector<Others> AllOthers() {
  const Script commit = [](World& world, int actor) { world.CommitSlow(actor); };
  const Script remove = [](World& world, int actor) {
    world.Delete(actor, 2);
    world.Delete(actor, 1);
  };
  const Script in_turn = [=](World& world, int actor) {
    commit(world, actor);
    remove(world, actor);
  };
  const Script save_and_remove = [=](World& world, int actor) {
    world.Save(actor, 4);
    remove(world, actor);
  };
  const Script prune = [](World& world, int actor) { world.Prune(actor); };
  const Script clean_up = [](World& world, int actor) { world.CleanUp(actor); };
  return {{{in_turn}, 2},
          {{save_and_remove}, 2},
          {{commit, remove}, 1},
          {{commit, remove, clean_up}, 0},
          {{commit, prune, CleanUpTwice}, 1}};
}

TEST(CrashSeries, EveryAnswerWasRightAtSomeMoment) {
  Totals totals;
  Crashes crashes;
  for (const Others& others : AllOthers()) {
    for (const Question question : kQuestions) {
      std::vector<Script> scripts{Asking(question)};
      scripts.insert(scripts.end(), others.scripts.begin(), others.scripts.end());
      RunAll(scripts, others.preemptions_max, crashes, totals);
      ASSERT_EQ(totals.wrong, "");
    }
  }
  auto counts = totals.crashes.ForResults();
  counts.insert(counts.begin(), {{"schedules", totals.schedules}, {"answers", totals.answers}});
  RecordRun({.row = "crash-series",
             .title = "Orders of a lister and of saves, deletions and clean-ups in the series",
             .command = "ctest --test-dir build/dev -R crash.series",
             .counts = counts,
             .exact = false});
}

// All at once, in orders that are drawn.
Totals RunAtRandom(const std::vector<Script>& scripts, std::uint64_t seeds,
                   std::uint64_t images_per_seed) {
  Totals totals;
  Crashes crashes;
  for (std::uint64_t seed = 0; seed < seeds && totals.wrong.empty(); ++seed) {
    World world(static_cast<int>(scripts.size()));
    PlayAtRandom({.disk = world.disk(),
                  .actors = ActorsOf(world, scripts),
                  .at_rest = [&] { world.Look(); }},
                 seed);
    ++totals.schedules;
    Add(world, totals);
    std::mt19937_64 random(seed);
    if (totals.wrong.empty()) {
      crashes.TrySome(world.disk().history(), images_per_seed, random, totals);
    }
    if (!totals.wrong.empty()) totals.wrong += "\nseed " + std::to_string(seed);
  }
  return totals;
}

void AskAll(World& world, int actor) {
  for (const Question question : kQuestions) world.Ask(actor, question);
}

void ReadTwice(World& world, int actor) {
  for (int i = 0; i < 2; ++i) world.Read(actor);
}

void PruneThrice(World& world, int actor) {
  for (int i = 0; i < 3; ++i) world.Prune(actor);
}

TEST(CrashSeries, AllAtOnce) {
  const Script save = [](World& world, int actor) {
    world.CommitSlow(actor);
    world.Save(actor, 4);
    world.Save(actor, 5);
  };
  const Totals totals = RunAtRandom({AskAll, ReadTwice, save, PruneThrice, CleanUpTwice}, 80, 20);
  EXPECT_EQ(totals.wrong, "");
  RecordRun({.row = "crash-series-random",
             .title = "Lister, reader, saver, pruning and clean-up in random orders",
             .command = "ctest --test-dir build/dev -R crash.series",
             .counts = {{"orders", totals.schedules},
                        {"answers", totals.answers},
                        {"images after a crash", totals.images}},
             .exact = false});
}

// Two savers may make a fork, at which a pruning stops. What is newest is known all the same,
// though it need not have the greatest step.
TEST(CrashSeries, TwoSaversAtOnce) {
  const Script one = [](World& world, int actor) {
    world.CommitSlow(actor);
    world.Save(actor, 4);
  };
  const Script other = [](World& world, int actor) {
    world.Save(actor, 5);
    world.Save(actor, 6);
  };
  const Totals totals = RunAtRandom({AskAll, one, other, PruneThrice, CleanUpTwice}, 60, 0);
  EXPECT_EQ(totals.wrong, "");
}

}  // namespace
}  // namespace sealpoint::testing
