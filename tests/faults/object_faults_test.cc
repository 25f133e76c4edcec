// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "sealpoint/object_store.h"
#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tests/faults/tiny_state.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/storage/memory_object_store.h"

// Every request of a save, a load, a clean-up and a pruning over an object store is refused, loses
// its reply, takes effect later, or is the last before the process dies: what follows is right, or
// an error that says so, and never half a checkpoint.

namespace sealpoint::testing {
namespace {

const std::string kRun = "mem://bucket/run";
const std::string kStep = kRun + "/step-000000000007-0a0b0c0d";
const TinyState kState;

// Blobs of some parts each.
std::shared_ptr<MemoryObjectStore> StoreOfSmallParts() {
  auto store = std::make_shared<MemoryObjectStore>();
  store->part_size = 4 * kKiB;
  return store;
}

struct World {
  std::shared_ptr<MemoryObjectStore> store = StoreOfSmallParts();
  std::shared_ptr<Storage> storage = ObjectStorage(store).value();

  Result<CommitInfo> Save() const {
    const auto engine = SmallEngine(storage, 32);
    if (Status made = storage->CreateDirectories(kStep); !made.ok()) return made;
    return SaveByHand(*engine, kStep, kState);
  }
  // A checkpoint of BuildInSeries.
  void Put(std::uint8_t attempt) const {
    const std::uint8_t parent = static_cast<std::uint8_t>(attempt - 1);
    for (const auto& [name, bytes] : BuildInSeries(attempt, parent, attempt).files) {
      store->Set("run/step-" + std::to_string(attempt) + "/" + name, bytes);
    }
  }
  Series series() const { return Series(kRun, storage); }
};

// Runs `action` on worlds that `prepare` fills, with each trouble in each of its requests, and then
// `check`, with the number of the request, when all trouble is over. Returns the requests of a run
// without trouble.
std::uint64_t WithEveryTrouble(
    const std::function<void(const World&)>& prepare,
    const std::function<Status(const World&)>& action,
    const std::function<void(const World&, const Status&, Trouble, std::uint64_t)>& check) {
  const World good;
  prepare(good);
  good.store->ResetCounts();
  const Status status = action(good);
  EXPECT_TRUE(status.ok()) << status.ToString();
  const std::uint64_t count = good.store->request_count();
  for (const Trouble trouble : kTroubles) {
    const bool is_delayed = trouble == Trouble::kDelayed;
    for (const std::uint64_t delay :
         is_delayed ? std::vector<std::uint64_t>{1, 2, 3, 1000} : std::vector<std::uint64_t>{1}) {
      for (std::uint64_t i = 0; i < count; ++i) {
        SCOPED_TRACE("trouble " + std::to_string(static_cast<int>(trouble)) + " of request " +
                     std::to_string(i) + ", delay " + std::to_string(delay));
        World world;
        prepare(world);
        world.store->delay = delay;
        world.store->FailAt(i, trouble);
        const Status outcome = action(world);
        world.store->Settle();
        EXPECT_TRUE(outcome.ok() || !outcome.message().empty());
        check(world, outcome, trouble, i);
      }
    }
  }
  return count;
}

bool IsWhole(const World& world) {
  const auto opened = Checkpoint::Open(kStep, {.storage = world.storage});
  if (opened.ok()) {
    EXPECT_EQ(LoadAndCompare(**opened, kState).value(), "");
    return true;
  }
  const Code code = opened.error().code();
  EXPECT_TRUE(code == Code::kUncommitted || code == Code::kNotFound ||
              code == Code::kNotACheckpoint)
      << opened.error().ToString();
  return false;
}

TEST(ObjectFaults, ASaveIsCommittedOrNotAndSaysSo) {
  std::uint64_t unknown = 0;
  std::uint64_t of_lost_reply = 0;
  std::uint64_t last = 0;
  last = WithEveryTrouble(
             [](const World&) {}, [](const World& world) { return world.Save().status(); },
             [&](const World& world, const Status& outcome, Trouble trouble, std::uint64_t i) {
               const bool is_whole = IsWhole(world);
               if (OutcomeIsUnknown(outcome)) {
                 ++unknown;
                 EXPECT_EQ(trouble, Trouble::kDead) << outcome.ToString();
               } else {
                 EXPECT_EQ(is_whole, outcome.ok()) << outcome.ToString();
               }
               if (trouble == Trouble::kLostReply && outcome.ok()) of_lost_reply = i;
               // Nobody is alive any more: what is left can be removed, and is then gone.
               const bool has_nothing =
                   world.store->Objects().empty() && world.store->unfinished_uploads() == 0;
               if (is_whole || has_nothing) return;
               const std::string name = kStep.substr(kRun.size() + 1);
               for (int call = 0; call < 2; ++call) {
                 const auto removed = world.series().RemoveUncommitted(name);
                 const bool is_gone = removed.error().code() == Code::kNotFound;
                 EXPECT_TRUE(removed.ok() || is_gone) << removed.error().ToString();
               }
               EXPECT_TRUE(world.store->Objects().empty());
               EXPECT_EQ(world.store->unfinished_uploads(), 0u);
             }) -
         1;
  EXPECT_EQ(unknown, 1u) << "only who dies in the publication does not know";
  EXPECT_EQ(of_lost_reply, last) << "a marker whose reply was lost is read back";
}

// Alone, and behind the marker of a slow writer that came first.
TEST(ObjectFaults, AVoidMarkerIsThereOrNotAndSaysSo) {
  const MiniContainer slow = BuildInSeries(7, 6, 7);
  const auto marker_of = [](const World& world) {
    const auto objects = world.store->Objects();
    const auto found = objects.find(kStep.substr(kStep.find("run/")) + "/COMMIT");
    return found == objects.end() ? Bytes() : found->second;
  };
  std::uint64_t unknown = 0;
  for (const bool is_late : {false, true}) {
    const auto prepare = [&](const World& world) {
      for (const auto& [name, bytes] : slow.files) {
        if (name == "COMMIT" && !is_late) continue;
        world.store->Set(kStep.substr(kStep.find("run/")) + "/" + name, bytes);
      }
    };
    const auto publish = [&](const World& world) {
      const Status status = PublishVoidMarker(*world.storage, kStep);
      const bool was_refused = is_late && status.code() == Code::kAlreadyExists;
      return was_refused ? Status() : status;
    };
    WithEveryTrouble(
        prepare, publish, [&](const World& world, const Status& outcome, Trouble, std::uint64_t) {
          const Bytes marker = marker_of(world);
          if (is_late) {
            EXPECT_EQ(marker, slow.files.at("COMMIT"));
            EXPECT_TRUE(Checkpoint::Open(kStep, {.storage = world.storage}).ok());
            return;
          }
          if (OutcomeIsUnknown(outcome)) {
            ++unknown;
          } else {
            EXPECT_EQ(outcome.ok(), !marker.empty()) << outcome.ToString();
          }
          if (marker.empty()) return;
          EXPECT_TRUE(world.series().List()->entries.at(0).is_void);
          // For good: whoever puts it again does not replace it.
          EXPECT_EQ(PublishVoidMarker(*world.storage, kStep).code(), Code::kAlreadyExists);
          EXPECT_EQ(marker_of(world), marker);
        });
  }
  EXPECT_EQ(unknown, 1u) << "only who dies in the publication does not know";
}

TEST(ObjectFaults, ALoadIsRightOrAnError) {
  WithEveryTrouble([](const World& world) { ASSERT_TRUE(world.Save().ok()); },
                   [](const World& world) -> Status {
                     const auto opened = Checkpoint::Open(kStep, {.storage = world.storage});
                     if (!opened.ok()) return opened.error();
                     const auto compared = LoadAndCompare(**opened, kState);
                     if (compared.ok()) EXPECT_EQ(*compared, "");
                     return compared.status();
                   },
                   [](const World& world, const Status& outcome, Trouble, std::uint64_t) {
                     // What only fetches ahead may fail: the read itself asks again.
                     EXPECT_TRUE(outcome.ok() || outcome.code() == Code::kIo) << outcome.ToString();
                     EXPECT_EQ(FindDamage(world.storage, kStep), "");
                   });
}

TEST(ObjectFaults, APruningLosesNothingAndCanGoOn) {
  const auto prune = [](const World& world) {
    return world.series().Prune({.keep_last = 2}).status;
  };
  WithEveryTrouble(
      [](const World& world) {
        for (std::uint8_t attempt = 1; attempt <= 4; ++attempt) world.Put(attempt);
      },
      prune,
      [&](const World& world, const Status&, Trouble, std::uint64_t) {
        const auto newest = world.series().Newest();
        ASSERT_TRUE(newest.ok()) << newest.error().ToString();
        EXPECT_EQ(newest->entry.step, 104u);
        EXPECT_TRUE(prune(world).ok());
        const SeriesListing left = world.series().List().value();
        EXPECT_GE(left.entries.size(), 2u);
        EXPECT_EQ(left.entries[1].step, 103u);
        for (const SeriesEntry& entry : left.entries) {
          const bool is_kept = entry.step == 104 || entry.step == 103;
          EXPECT_EQ(entry.verdict, is_kept ? Verdict::kCommitted : Verdict::kUncommitted);
          if (is_kept) EXPECT_EQ(FindDamage(world.storage, entry.path), "");
        }
      });
}

TEST(ObjectFaults, AServerThatIgnoresTheConditionIsRefusedBeforeTheFirstByte) {
  World world;
  world.store->ignores_condition = true;
  ASSERT_TRUE(world.storage->CreateDirectories(kRun).ok());
  const auto engine = SmallEngine(world.storage, 32);
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm, {}).value();
  const Status refused = SaveState(*saver, SaveTarget::InSeries(kRun), kState, 0, 1).status();
  EXPECT_THAT(refused, FailsRule(Code::kUnsupported, "R-CMT-04"));
  EXPECT_TRUE(world.store->Objects().empty());
  world.store->ignores_condition = false;
  const auto again = Saver::Create(*engine, *comm, {}).value();
  const auto saved = SaveState(*again, SaveTarget::InSeries(kRun), kState, 0, 1);
  ASSERT_TRUE(saved.ok()) << saved.error().ToString();
  EXPECT_EQ(FindDifference(world.storage, saved->directory, kState), "");
}

// Three committers of their own blobs in one directory.
TEST(ObjectFaults, OfThreeCommittersOneWins) {
  constexpr int kRounds = 200;
  constexpr int kCommitters = 3;
  const World world;
  const auto engine = SmallEngine(world.storage, 32);
  const TensorSpec tensor = ByteTensor("w", 10);
  for (int round = 0; round < kRounds; ++round) {
    const std::string path = kRun + "/" + std::to_string(round);
    std::vector<std::vector<BlobSummary>> blobs;
    for (int i = 0; i < kCommitters; ++i) {
      ASSERT_TRUE(world.storage->CreateDirectories(path).ok());
      const auto writer = BlobWriter::Create(*engine, path).value();
      const Bytes bytes(10, static_cast<std::byte>(i));
      ASSERT_TRUE(writer->Add(tensor, Slice(0, 10), MemoryView::Host(std::span(bytes))).ok());
      blobs.push_back(writer->Finish().value());
    }
    std::atomic<int> ready = 0;
    std::atomic<int> winners = 0;
    std::atomic<int> winner = -1;
    std::vector<std::thread> threads;
    for (int i = 0; i < kCommitters; ++i) {
      threads.emplace_back([&, i] {
        for (++ready; ready < kCommitters;) std::this_thread::yield();
        const auto committed = Commit(*world.storage, path, {}, blobs[static_cast<std::size_t>(i)]);
        if (committed.ok()) {
          ++winners;
          winner = i;
        } else {
          EXPECT_THAT(committed.error(), FailsRule(Code::kAlreadyExists, "R-CMT-01"));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1);
    ASSERT_EQ(LoadWhole(*OpenFrom(world.storage, path), "w"),
              Bytes(10, static_cast<std::byte>(winner.load())));
  }
}

// A page of 10 names stands for one of 1000.
TEST(ObjectFaults, FewRequestsOpenAndCommit) {
  for (const std::size_t blob_count : {1u, 7u, 8u, 25u}) {
    const World world;
    world.store->page_size = 10;
    ASSERT_TRUE(world.storage->CreateDirectories(kStep).ok());
    const auto engine = SmallEngine(world.storage, 32);
    const TensorSpec tensor = ByteTensor("w", blob_count);
    std::vector<BlobSummary> blobs;
    for (std::size_t i = 0; i < blob_count; ++i) {
      const auto writer = BlobWriter::Create(*engine, kStep).value();
      const Bytes byte(1);
      ASSERT_TRUE(writer->Add(tensor, Slice(i, i + 1), MemoryView::Host(std::span(byte))).ok());
      blobs.push_back(writer->Finish().value().at(0));
    }
    const std::uint64_t pages = (blob_count + 2 + 9) / 10;  // with index and marker
    world.store->ResetCounts();
    ASSERT_TRUE(Commit(*world.storage, kStep, {}, blobs).ok());
    const std::uint64_t of_commit = world.store->request_count() - 1;  // without the index's upload
    EXPECT_LE(of_commit, 6 + (pages - 1));
    world.store->ResetCounts();
    ASSERT_TRUE(Checkpoint::Open(kStep, {.storage = world.storage}).ok());
    EXPECT_LE(world.store->request_count(), 3 + pages);
    std::printf("[ counted  ] %zu blobs: commit %d, open %d requests\n", blob_count,
                static_cast<int>(of_commit), static_cast<int>(world.store->request_count()));
  }
}

}  // namespace
}  // namespace sealpoint::testing
