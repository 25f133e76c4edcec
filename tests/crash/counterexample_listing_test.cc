// SPDX-License-Identifier: Apache-2.0
//
// The counterexamples of spec/model/listing.pml: one call of Newest, between whose operations the
// others of the model work. Step 1 is the checkpoint of directory 0; the attempts of the savers
// have names that come before it.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lib/format/constants.h"
#include "tests/crash/counterexample_rows.h"
#include "tests/crash/series_onlooker.h"
#include "tests/support/crash/runs.h"
#include "tests/support/storage/failing_storage.h"
#include "tests/support/storage/forwarding_storage.h"

namespace sealpoint::testing {
namespace {

const std::string kSeries(kCrashSeries);

// What the lister asks the series: its names, or for the marker of a directory; and how often so
// far.
struct Asked {
  std::string what{};  // "names", or the name of the directory
  int nth = 1;
  friend auto operator<=>(const Asked&, const Asked&) = default;
};

// What happens before an operation of the lister. An image: the operation sees that instead.
using Event = std::function<std::optional<CrashImage>()>;

// The storage of the lister.
class Interrupted final : public ForwardingStorage {
 public:
  explicit Interrupted(std::shared_ptr<Storage> inner)
      : ForwardingStorage(inner), inner_(std::move(inner)), events_(std::make_shared<Events>()) {}

  void Before(const Asked& asked, Event event) { events_->planned[asked] = std::move(event); }

  Result<std::unique_ptr<Directory>> OpenDirectory(std::string_view path) const override {
    auto opened = inner_->OpenDirectory(path);
    if (!opened.ok() || path != kSeries) return opened;
    return std::unique_ptr<Directory>(
        std::make_unique<InterruptedSeries>(*std::move(opened), events_));
  }

 private:
  struct Events {
    std::map<Asked, Event> planned{};
    std::map<std::string, int> counts{};
    std::map<std::string, std::unique_ptr<Directory>> old{};  // what the last operation sees

    void Meet(const std::string& what) {
      old.erase(what);
      const auto event = planned.find({what, ++counts[what]});
      const auto image = event == planned.end() ? std::nullopt : event->second();
      if (image) old[what] = StorageOf(*image)->OpenDirectory(kSeries).value();
    }
    const Directory* OldOf(const std::string& what) const {
      const auto found = old.find(what);
      return found == old.end() ? nullptr : found->second.get();
    }
  };

  class InterruptedSeries final : public ForwardingDirectory {
   public:
    InterruptedSeries(std::unique_ptr<Directory> inner, std::shared_ptr<Events> events)
        : ForwardingDirectory(std::move(inner)), events_(std::move(events)) {}

    Result<std::vector<EntryInfo>> List() const override {
      events_->Meet("names");
      const Directory* const old = events_->OldOf("names");
      return old != nullptr ? old->List() : ForwardingDirectory::List();
    }
    Result<Bytes> ReadFileIn(std::string_view subdirectory, std::string_view name,
                             std::size_t size_max) const override {
      const std::string what(subdirectory);
      events_->Meet(what);
      const Directory* const old = events_->OldOf(what);
      return old != nullptr ? old->ReadFileIn(what, name, size_max)
                            : ForwardingDirectory::ReadFileIn(what, name, size_max);
    }
    // The rest of the look that began with ReadFileIn.
    Result<std::unique_ptr<Directory>> OpenSubdirectory(std::string_view name) const override {
      const Directory* const old = events_->OldOf(std::string(name));
      return old != nullptr ? old->OpenSubdirectory(name)
                            : ForwardingDirectory::OpenSubdirectory(name);
    }

   private:
    const std::shared_ptr<Events> events_;
  };

  const std::shared_ptr<Storage> inner_;
  const std::shared_ptr<Events> events_;
};

enum class Found : std::uint8_t {
  kRight,
  kError,  // of which nobody can believe that it is an answer
  kNothing,
  kNeverNewest,
  kDamage,
  kNoneIsLeft,
};

const std::map<std::string, Found> kFound{
    {"lister finds no checkpoint though there was one all the time", Found::kNothing},
    {"lister finds a checkpoint that was not the newest at any time", Found::kNeverNewest},
    {"lister reports damage where there is none", Found::kDamage},
    {"reader finds that no checkpoint is left", Found::kNoneIsLeft},
};

constexpr int kLister = 0;
constexpr int kOthers = 1;

// Actor 0 lists; actor 1 does what the others do.
class Play {
 public:
  explicit Play(const CrashImage& start) : disk_(2, start), onlooker_(disk_) {
    lister_ = std::make_shared<Interrupted>(disk_.View(kLister));
    failing_ = std::make_shared<FailingStorage>(lister_);
    disk_.SetView(kLister, failing_);
    onlooker_.Look();
  }

  // What the others do, and, if `sees` is set, what the operation sees instead of the series now.
  void Before(const Asked& asked, const std::function<void()>& others,
              const std::optional<CrashImage>& sees = std::nullopt) {
    lister_->Before(asked, [this, others, sees] {
      others();
      onlooker_.Look();
      return sees;
    });
  }
  void See(const Asked& asked, const std::function<CrashImage()>& sees) {
    lister_->Before(asked, [sees] { return std::optional(sees()); });
  }
  FailingStorage& storage() { return *failing_; }
  CrashDisk& disk() { return disk_; }

  // Commits the blobs that are in the directory.
  void Commit(const std::string& name, std::uint64_t step, std::uint8_t id,
              const std::optional<ParentRef>& parent) {
    const std::string directory = JoinPath(kCrashSeries, name);
    const auto storage = disk_.View(kOthers);
    std::vector<BlobSummary> summaries;
    for (const BlobId& blob : ListBlobs(*storage, directory).value()) {
      summaries.push_back(ReadSummary(*storage, directory, blob).value());
    }
    AttemptId attempt;
    attempt.bytes.front() = static_cast<std::byte>(id);
    attempt.bytes.back() = std::byte{1};
    const auto committed = sealpoint::Commit(
        *storage, directory, {.attempt = attempt, .step = step, .parent = parent}, summaries);
    EXPECT_TRUE(committed.ok()) << committed.error().ToString();
    onlooker_.Look();
  }
  // A deletion that ends behind the removal of the marker, or of the files.
  void DeleteHalf(const std::string& name, bool with_files = false) {
    const auto storage = std::make_shared<FailingStorage>(disk_.View(kOthers));
    const StorageOp last = with_files ? StorageOp::kRemoveDirectory : StorageOp::kRemove;
    storage->Fail({.op = last, .name = with_files ? "" : ".", .nth = 0});
    EXPECT_EQ(Series(kSeries, storage).Delete(name).code(), Code::kIo);
    onlooker_.Look();
  }
  CrashImage Now() const { return disk_.Now(); }

  Found Ask() {
    const auto point = OpenCrashSeries(disk_, kLister).Newest();
    EXPECT_EQ(onlooker_.wrong(), "");
    if (point.ok()) {
      return onlooker_.WasNewest(point->entry.attempt, 0) ? Found::kRight : Found::kNeverNewest;
    }
    if (point.error().code() == Code::kNotFound) {
      return onlooker_.WasNewest({}, 0) ? Found::kRight : Found::kNothing;
    }
    return point.error().code() == Code::kIncomplete ? Found::kDamage : Found::kError;
  }

 private:
  CrashDisk disk_;
  SeriesOnlooker onlooker_;
  std::shared_ptr<Interrupted> lister_;
  std::shared_ptr<FailingStorage> failing_;
};

// Without the step, what the row says; with it, an answer that is right, or an error.
void Compare(const std::function<Found()>& without, const std::function<Found()>& real,
             Found expected = Found::kRight) {
  const CounterexampleRow* const row = RowOfRunningTest();
  ASSERT_NE(row, nullptr) << "no row of counterexamples.md has this name";
  ASSERT_TRUE(kFound.contains(row->found)) << "no test knows \"" << row->found << "\"";
  EXPECT_EQ(without(), kFound.at(row->found));
  EXPECT_EQ(real == nullptr, row->is_excluded);
  if (real) {
    EXPECT_EQ(real(), expected);
  }
  NotePlayed(*row, true, real != nullptr);
}

// A series with these steps committed, and attempts of steps 2, 3, … in these directories.
CrashImage StartWith(const std::vector<std::uint64_t>& steps,
                     const std::vector<std::string>& attempts) {
  CrashImage image = SeriesWith(steps);
  std::uint64_t step = 2;
  for (const std::string& name : attempts) {
    CrashDisk disk(1, image);
    EXPECT_TRUE(disk.View(0)->CreateDirectories(JoinPath(kCrashSeries, name)).ok());
    WriteBlobs(disk, step++, JoinPath(kCrashSeries, name));
    image = disk.Now();
  }
  return image;
}

ParentRef ParentIn(const CrashImage& image, std::uint64_t step) {
  const SeriesListing listing = Series(kSeries, StorageOf(image)).List().value();
  for (const SeriesEntry& entry : listing.entries) {
    if (entry.step == step) return {entry.attempt, entry.sequence};
  }
  return {};
}

// Step 1, and an attempt behind it that is published while the lister is on its way from the one
// to the other.
struct OneAttempt {
  CrashImage start = StartWith({1}, {"attempt"});
  std::string older = NameOfStep(start, 1);
  ParentRef parent = ParentIn(start, 1);
  Play play{start};

  OneAttempt() {
    play.Before({older}, [this] {
      play.Commit("attempt", 2, 1, parent);
      play.DeleteHalf(older);
    });
  }
};

TEST(ListingCounterexample, no_second_look) {
  const auto ask = [](bool looks_again) {
    OneAttempt one;
    if (!looks_again) one.play.See({"attempt", 2}, [&] { return one.start; });
    return one.play.Ask();
  };
  Compare([&] { return ask(false); }, [&] { return ask(true); });
}

// The later attempt is published first, and is not older.
TEST(ListingCounterexample, names_listed_once) {
  const auto ask = [](bool lists_again) {
    const CrashImage start = StartWith({}, {"a"});
    Play play(start);
    play.Before({"a"}, [&] {
      EXPECT_TRUE(
          WriteAndCommitAlone(play.disk(), 3, "run/b", kOthers, AttemptId::Random().value()).ok());
      play.Commit("a", 2, 0x00, std::nullopt);
    });
    if (!lists_again) play.See({"names", 2}, [&] { return start; });
    return play.Ask();
  };
  Compare([&] { return ask(false); }, [&] { return ask(true); });
}

TEST(ListingCounterexample, names_before_second_look) {
  const auto ask = [](bool is_in_order) {
    OneAttempt one;
    CrashImage before;
    one.play.Before({"attempt", 2}, [&] {
      before = one.play.Now();
      EXPECT_TRUE(SaveAlone(one.play.disk(), 3, kOthers).ok());
      one.play.DeleteHalf("attempt");
    });
    if (!is_in_order) one.play.See({"names", 2}, [&] { return before; });
    return one.play.Ask();
  };
  Compare([&] { return ask(false); }, [&] { return ask(true); });
}

CrashImage WithoutMarker(CrashImage image, const std::string& name) {
  image.folders.at(JoinPath(kCrashSeries, name))
      .files.erase(std::string(internal::format::kMarkerName));
  return image;
}

// To whom the marker is absent, the series is as if it were.
Found AskWithoutMarker() {
  const CrashImage start = StartWith({1}, {});
  const std::string older = NameOfStep(start, 1);
  Play play(start);
  for (const int nth : {1, 2}) {
    play.See({older, nth}, [&] { return WithoutMarker(start, older); });
  }
  return play.Ask();
}

// Every look at the marker ends so.
Found AskWithError(Code code) {
  Play play(StartWith({1}, {}));
  play.storage().Fail({.op = StorageOp::kOpenForRead,
                       .name = std::string(internal::format::kMarkerName),
                       .nth = 0,
                       .error = {code, "injected"}});
  return play.Ask();
}

TEST(ListingCounterexample, error_is_absence) {
  Compare(AskWithoutMarker, [] { return AskWithError(Code::kIo); }, Found::kError);
}

TEST(ListingCounterexample, not_confirmed) {
  Compare(AskWithoutMarker, [] { return AskWithError(Code::kNotFound); }, Found::kError);
}

// The deletion comes between the listing and the look behind the marker.
TEST(ListingCounterexample, damage_believed) {
  const auto ask = [](bool looks_again) {
    const CrashImage start = StartWith({1}, {});
    const std::string older = NameOfStep(start, 1);
    Play play(start);
    bool is_over = false;
    play.storage().SetHook([&](StorageOp op, std::string_view name) {
      if (is_over || op != StorageOp::kOpenForRead || !name.ends_with(".index")) return;
      is_over = true;
      EXPECT_TRUE(SaveAlone(play.disk(), 2, kOthers).ok());
      play.DeleteHalf(older, true);
    });
    if (!looks_again) play.See({older, 2}, [&] { return start; });
    return play.Ask();
  };
  Compare([&] { return ask(false); }, [&] { return ask(true); });
}

// The deletion of the only one, with and without the question that precedes it.
TEST(ListingCounterexample, newest_deleted) {
  const auto play = [](bool asks) {
    CrashDisk disk(1, StartWith({1}, {}));
    const std::string name = NameOfStep(disk.Now(), 1);
    const Status removed =
        asks ? OpenCrashSeries(disk).Delete(name)
             : disk.View(0)->OpenDirectory(JoinPath(kCrashSeries, name)).value()->Remove("COMMIT");
    EXPECT_EQ(removed.code(), asks ? Code::kInvalidArgument : Code::kOk);
    return OpenCrashSeries(disk).Newest().ok() ? Found::kRight : Found::kNoneIsLeft;
  };
  Compare([&] { return play(false); }, [&] { return play(true); });
}

// Two attempts behind step 1: one is published and deleted behind the other within the call.
TEST(ListingCounterexample, fork_deleted) {
  Compare(
      [] {
        const CrashImage start = StartWith({1}, {"a", "b"});
        const std::string older = NameOfStep(start, 1);
        const ParentRef parent = ParentIn(start, 1);
        Play play(start);
        play.Before({older}, [&] {
          play.Commit("b", 3, 1, parent);
          play.DeleteHalf(older);
        });
        play.Before({"b", 2}, [&] {
          play.Commit("a", 2, 2, parent);
          play.DeleteHalf("b");
        });
        return play.Ask();
      },
      nullptr);
}

}  // namespace
}  // namespace sealpoint::testing
