// SPDX-License-Identifier: Apache-2.0
//
// Listings beside savers, prunings and clean-ups: what others do between any two operations of a
// listing, enumerated and at random. A right answer is one that was right at some moment of the
// call (R-SER-22).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lib/series/series_scan.h"
#include "tests/support/process/results.h"
#include "tests/unit/series/series_fixture.h"

namespace sealpoint::testing {
namespace {

// A series of checkpoints that are named by their sequence, from the view of an onlooker who sees
// everything at once, without the storage's log.
class World {
 public:
  // A listing looks at the directories by name: at the oldest checkpoint first, or at the newest.
  enum class Order : std::uint8_t { kOldestFirst, kNewestFirst };

  World(std::shared_ptr<Storage> storage, Order order)
      : storage_(std::move(storage)), order_(order) {}

  void Begin(std::uint8_t number) {
    auto files = Container(number).files;
    files.erase("COMMIT");
    StoreFiles(*storage_, Path(number), files);
  }
  void Publish(std::uint8_t number) {
    const Bytes marker = Container(number).files.at("COMMIT");
    ReplaceFile(*storage_, Path(number), "COMMIT", &marker);
    committed_.insert(number);
    Note();
  }
  void RemoveMarker(std::uint8_t number) {
    // A real pruning may have been here before.
    const auto directory = storage_->OpenDirectory(Path(number));
    if (directory.ok()) static_cast<void>((*directory)->Remove("COMMIT"));
    committed_.erase(number);
    Note();
  }
  void RemoveFiles(std::uint8_t number) {
    const auto directory = storage_->OpenDirectory(Path(number));
    if (!directory.ok()) return;
    for (const EntryInfo& entry : (*directory)->List().value()) {
      ASSERT_TRUE((*directory)->Remove(entry.name).ok());
    }
  }
  void RemoveFolder(std::uint8_t number) {
    const auto series = storage_->OpenDirectory(InPlace("series")).value();
    const Status removed = series->RemoveSubdirectory(Name(number));
    ASSERT_TRUE(removed.ok() || removed.code() == Code::kNotFound) << removed.ToString();
  }
  // The deletion of a checkpoint, in the order of R-SER-06, by what was done of it so far.
  void GoOnDeleting(std::uint8_t number, int step) {
    if (step == 0) RemoveMarker(number);
    if (step == 1) RemoveFiles(number);
    if (step == 2) RemoveFolder(number);
  }

  const std::set<std::uint8_t>& committed() const { return committed_; }
  // Which were the newest since the last call of this.
  void Forget() { newest_ = {newest()}; }
  bool WasNewest(std::uint64_t sequence) const {
    return std::find(newest_.begin(), newest_.end(), sequence) != newest_.end();
  }
  std::uint64_t newest() const { return committed_.empty() ? 0 : *committed_.rbegin(); }

 private:
  static const MiniContainer& Container(std::uint8_t number) {
    static auto* const made = new std::map<std::uint8_t, MiniContainer>();
    const auto found = made->find(number);
    if (found != made->end()) return found->second;
    const auto parent = static_cast<std::uint8_t>(number - 1);
    return made->emplace(number, BuildInSeries(number, parent, number)).first->second;
  }
  std::string Name(std::uint8_t number) const {
    return std::to_string(order_ == Order::kOldestFirst ? 100 + number : 900 - number);
  }
  std::string Path(std::uint8_t number) const { return InPlace("series/" + Name(number)); }
  void Note() { newest_.push_back(newest()); }

  const std::shared_ptr<Storage> storage_;
  const Order order_;
  std::set<std::uint8_t> committed_;
  std::vector<std::uint64_t> newest_;
};

struct Setting {
  const std::shared_ptr<Storage> memory = NewPlace();
  const std::shared_ptr<FailingStorage> storage = std::make_shared<FailingStorage>(memory);
  const Series series{InPlace("series"), storage};
  World world;

  // 1 and 2 are committed, 3 is an attempt; a dead attempt and a foreign directory beside them.
  explicit Setting(World::Order order = World::Order::kOldestFirst) : world(memory, order) {
    EXPECT_TRUE(memory->CreateDirectories(InPlace("series/logs")).ok());
    EXPECT_TRUE(memory->CreateDirectories(InPlace("series/step-000000000009-09090909")).ok());
    for (const std::uint8_t number : {std::uint8_t{1}, std::uint8_t{2}}) {
      world.Begin(number);
      world.Publish(number);
    }
    world.Begin(3);
    world.Forget();
  }
};

enum class Question : std::uint8_t { kNewest, kList, kMarkers };
constexpr Question kQuestions[] = {Question::kNewest, Question::kList, Question::kMarkers};

// The sequence of the newest checkpoint as the question answers it; an error, or no checkpoint,
// fails the test.
std::uint64_t Ask(const Setting& setting, Question question) {
  if (question == Question::kNewest) {
    const auto point = setting.series.Newest();
    EXPECT_TRUE(point.ok()) << point.error().ToString();
    return point.ok() ? point->entry.sequence : 0;
  }
  const auto detail = question == Question::kList ? internal::series::SeriesDetail::kFiles
                                                  : internal::series::SeriesDetail::kMarkers;
  const auto listing = internal::series::ScanSeries(*setting.storage, InPlace("series"), detail);
  EXPECT_TRUE(listing.ok()) << listing.error().ToString();
  const SeriesEntry* const newest = listing.ok() ? listing->newest() : nullptr;
  EXPECT_NE(newest, nullptr);
  return newest != nullptr ? newest->sequence : 0;
}

using Event = std::function<void(World&)>;

// What others do: each event in one step of theirs. Older ones are deleted behind two newer ones.
std::vector<std::vector<Event>> Scripts() {
  const auto publish = [](std::uint8_t number) {
    return Event([number](World& world) { world.Publish(number); });
  };
  const auto begin_and_publish = [](std::uint8_t number) {
    return Event([number](World& world) {
      world.Begin(number);
      world.Publish(number);
    });
  };
  const auto remove = [](std::uint8_t number, int step) {
    return Event([number, step](World& world) { world.GoOnDeleting(number, step); });
  };
  const auto remove_all = [](std::uint8_t number) {
    return Event([number](World& world) {
      for (int step = 0; step < 3; ++step) world.GoOnDeleting(number, step);
    });
  };
  return {
      {publish(3), begin_and_publish(4), remove_all(1), remove(2, 0), remove(2, 1), remove(2, 2)},
      {publish(3), begin_and_publish(4), remove(2, 0), remove(2, 1), remove(2, 2), remove_all(1)},
      {publish(3), remove(1, 0), remove(1, 1), remove(1, 2), begin_and_publish(4), remove_all(2)},
      {publish(3), remove(2, 0), begin_and_publish(4), remove(3, 0), remove_all(1)},
  };
}

struct Run {
  std::uint64_t calls = 0;
  bool is_right = false;
};

// The events happen before the operations of these numbers (ascending, from 0).
Run RunOnce(World::Order order, const std::vector<Event>& script,
            const std::vector<std::uint64_t>& at, Question question) {
  Setting setting(order);
  Run run;
  std::size_t next = 0;
  setting.storage->SetHook([&](StorageOp, std::string_view) {
    for (; next < script.size() && at[next] <= run.calls; ++next) script[next](setting.world);
    ++run.calls;
  });
  const std::uint64_t answer = Ask(setting, question);
  run.is_right = setting.world.WasNewest(answer);
  EXPECT_TRUE(run.is_right) << "newest is " << answer;
  return run;
}

// All sequences of `count` numbers in [0, end] that do not descend.
void ForEachPlacement(std::size_t count, std::uint64_t end,
                      const std::function<bool(const std::vector<std::uint64_t>&)>& visit) {
  std::vector<std::uint64_t> at(count, 0);
  while (visit(at)) {
    std::size_t i = count;
    while (i > 0 && at[i - 1] == end) --i;
    if (i == 0) return;
    const std::uint64_t value = at[i - 1] + 1;
    std::fill(at.begin() + static_cast<std::ptrdiff_t>(i) - 1, at.end(), value);
  }
}

// Sanitizers look for faults that do not depend on the order of events, and make a run ten times as
// long: with them only some placements are played.
#if defined(SEALPOINT_TEST_SANITIZED)
constexpr std::uint64_t kPlacementStep = 16;
#else
constexpr std::uint64_t kPlacementStep = 1;
#endif

// Every placement of the first two events; the later ones follow at equal distances. The number of
// runs, up to the first wrong answer.
std::uint64_t RunAllPlacements(World::Order order, const std::vector<Event>& script,
                               Question question) {
  std::uint64_t runs = 0;
  std::uint64_t placement = 0;
  // Behind the last operation of an undisturbed call nothing of it is left to disturb.
  const std::uint64_t end = RunOnce(order, {}, {}, question).calls;
  ForEachPlacement(2, end, [&](const std::vector<std::uint64_t>& first) {
    if (placement++ % kPlacementStep != 0) return true;
    for (const std::uint64_t distance : {0u, 2u}) {
      std::vector<std::uint64_t> at = first;
      while (at.size() < script.size()) at.push_back(at.back() + distance);
      ++runs;
      if (!RunOnce(order, script, at, question).is_right) return false;
    }
    return true;
  });
  return runs;
}

// The newest is looked at first, and published behind that look; no name is new.
TEST(SeriesRaceTest, ASecondLookFindsWhatWasPublishedMeanwhile) {
  const std::vector<Event> script = {[](World& world) { world.Publish(3); },
                                     [](World& world) { world.RemoveMarker(2); }};
  for (const Question question : kQuestions) {
    EXPECT_GT(RunAllPlacements(World::Order::kNewestFirst, script, question),
              100u / kPlacementStep);
  }
}

TEST(SeriesRaceTest, EveryAnswerWasRightAtSomeMoment) {
  std::uint64_t runs = 0;
  for (const auto order : {World::Order::kOldestFirst, World::Order::kNewestFirst}) {
    for (const Question question : kQuestions) {
      for (const std::vector<Event>& script : Scripts()) {
        runs += RunAllPlacements(order, script, question);
      }
    }
  }
  RecordRun({.row = "series-race",
             .title = "Listings of a series during saves and prunings, enumerated",
             .command = "ctest --test-dir build/dev -R unit.series",
             .counts = {{"interleavings", runs}},
             .exact = false});
  EXPECT_GT(runs, 1000u);
}

// A saver, a pruning that keeps two, and one that cleans up, each a few steps further at times.
class Others {
 public:
  Others(World& world, std::uint64_t seed) : world_(world), random_(seed) {}

  void Act() {
    switch (random_() % 8) {
      case 0:
        return Save();
      case 1:
        return Prune();
      default:
        return;
    }
  }

 private:
  void Save() {
    if (saving_ == 0) {
      saving_ = static_cast<std::uint8_t>(next_++);
      if (saving_ != 3) world_.Begin(saving_);
      return;
    }
    world_.Publish(saving_);
    saving_ = 0;
  }
  void Prune() {
    if (deleting_ == 0) {
      const auto& committed = world_.committed();
      if (committed.size() <= 2) return;
      // Any but the newest two.
      const std::uint64_t which = random_() % (committed.size() - 2);
      deleting_ = *std::next(committed.begin(), static_cast<std::ptrdiff_t>(which));
      step_ = 0;
    }
    world_.GoOnDeleting(deleting_, step_++);
    if (step_ == 3) deleting_ = 0;
  }

  World& world_;
  std::mt19937_64 random_;
  int next_ = 3;
  std::uint8_t saving_ = 0;
  std::uint8_t deleting_ = 0;
  int step_ = 0;
};

TEST(SeriesRaceTest, RandomOthersDoNotMakeAnAnswerWrong) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Setting setting;
    Others others(setting.world, seed);
    int budget = 200;  // numbers of one byte, and a series that rests in the end
    setting.storage->SetHook([&](StorageOp, std::string_view) {
      if (--budget > 0) others.Act();
    });
    for (std::uint64_t call = 0; call < 6; ++call) {
      setting.world.Forget();
      const std::uint64_t answer = Ask(setting, kQuestions[(seed + call) % 3]);
      ASSERT_TRUE(setting.world.WasNewest(answer)) << "seed " << seed << ", newest is " << answer;
    }
  }
}

// Prunings beside each other and a saver: two whole ones are always left, the newest among them.
TEST(SeriesRaceTest, PruningsBesideOthersKeepTheNewest) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Setting setting;
    Others others(setting.world, seed);
    int budget = 120;
    bool is_inside = false;
    std::mt19937_64 random(seed);
    setting.storage->SetHook([&](StorageOp, std::string_view) {
      if (is_inside || --budget <= 0) return;
      is_inside = true;
      others.Act();
      if (random() % 16 == 0) {
        EXPECT_TRUE(Series(InPlace("series"), setting.memory).Prune({}).status.ok()) << seed;
      }
      is_inside = false;
    });
    for (int call = 0; call < 3; ++call) {
      const PruneReport report = setting.series.Prune({});
      // The newer ones it saw may all be gone by then, behind yet newer ones.
      const bool is_overtaken = report.status.place().rule == "R-SER-11";
      EXPECT_TRUE(report.status.ok() || is_overtaken) << seed << ": " << report.status.ToString();
      const std::uint64_t newest = setting.world.newest();
      const auto found = Series(InPlace("series"), setting.memory).Newest();
      ASSERT_TRUE(found.ok()) << seed << ": " << found.error().ToString();
      ASSERT_EQ(found->entry.sequence, newest) << seed;
      const auto listing = Series(InPlace("series"), setting.memory).List().value();
      EXPECT_GE(std::count_if(
                    listing.entries.begin(), listing.entries.end(),
                    [](const SeriesEntry& entry) { return entry.verdict == Verdict::kCommitted; }),
                2)
          << seed;
    }
  }
}

// A series in which something is deleted during each listing is an error, and not an empty one.
TEST(SeriesRaceTest, ASeriesThatNeverRestsIsAnError) {
  for (const Question question : kQuestions) {
    Setting setting;
    int number = 0;
    setting.storage->SetHook([&](StorageOp op, std::string_view name) {
      if (op != StorageOp::kList || name != InPlace("series")) return;
      // Seen in this listing, and gone before it is looked at in the next one.
      EXPECT_TRUE(
          setting.memory->CreateDirectories(InPlace("series/x") + std::to_string(++number)).ok());
    });
    Status status;
    if (question == Question::kNewest) {
      status = setting.series.Newest().status();
    } else {
      status = setting.series.List().status();
    }
    EXPECT_THAT(status, HasCode(Code::kIo));
    EXPECT_THAT(status.message(), ::testing::HasSubstr("the series changed during each of 32"));
  }
}

// Whatever a storage call answers, no answer is a wrong one: not an older checkpoint, nor none.
TEST(SeriesFaultTest, NoErrorOfAnyCodeIsTakenForAbsence) {
  std::uint64_t faults = 0;
  for (const Question question : kQuestions) {
    Setting undisturbed;
    std::uint64_t calls = 0;
    undisturbed.storage->SetHook([&](StorageOp, std::string_view) { ++calls; });
    Ask(undisturbed, question);
    for (int code = 1; code <= static_cast<int>(Code::kInternal); ++code) {
      for (std::uint64_t nth = 1; nth <= calls; ++nth) {
        for (const bool persists : {false, true}) {
          // The series itself does not exist: that is what an empty one looks like.
          if (nth == 1 && static_cast<Code>(code) == Code::kNotFound) continue;
          Setting setting;
          setting.storage->Fail({.any_op = true,
                                 .nth = static_cast<int>(nth),
                                 .persists = persists,
                                 .error = {static_cast<Code>(code), "injected"}});
          ++faults;
          Status status;
          std::uint64_t answer = 0;
          if (question == Question::kNewest) {
            const auto point = setting.series.Newest();
            status = point.status();
            answer = point.ok() ? point->entry.sequence : 0;
          } else {
            const auto listing = internal::series::ScanSeries(
                *setting.storage, InPlace("series"),
                question == Question::kList ? internal::series::SeriesDetail::kFiles
                                            : internal::series::SeriesDetail::kMarkers);
            status =
                listing.ok() && listing->unread() ? listing->unread()->problem : listing.status();
            answer = listing.ok() && listing->newest() ? listing->newest()->sequence : 0;
          }
          if (status.ok()) {
            EXPECT_EQ(answer, 2u) << "code " << code << ", call " << nth;
          } else if (question == Question::kNewest) {
            EXPECT_NE(status.code(), Code::kNotFound) << "code " << code << ", call " << nth;
          }
        }
      }
    }
  }
  RecordRun({.row = "series-faults",
             .title = "Every error code from every storage call of a listing",
             .command = "ctest --test-dir build/dev -R unit.series",
             .counts = {{"faults injected", faults}},
             .exact = false});
}

}  // namespace
}  // namespace sealpoint::testing
