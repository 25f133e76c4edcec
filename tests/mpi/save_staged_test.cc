// SPDX-License-Identifier: Apache-2.0
//
// Saves that are committed on storage of each node, two ranks to a node, and promoted to a series
// that all see.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/saver.h"
#include "sealpoint/series.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::chrono::minutes kLong(1);

std::string Node(const SaveJob& job, int node) { return job.path("node" + std::to_string(node)); }
std::string Local(const SaveJob& job) { return Node(job, job.rank() / 2); }
// Where the copies of the series lie in the place of a node.
std::string Copies(const SaveJob& job, const std::string& place) {
  return FindStagedCopies({.local = place, .final_series = job.path("final")}, job.posix)
      .value()
      .folder;
}
int NodeCount(const SaveJob& job) { return (job.size() + 1) / 2; }

Result<CommitInfo> SaveStaged(SaveJob& job, std::uint64_t step) {
  return job.Save(UsualDeclaration(job.comm),
                  SaveTarget::Staged(Local(job), SaveTarget::InSeries(job.path("final"))),
                  {.step = step});
}

// Where they fail until the storage is healed, so that what is local can be looked at.
void HoldPromotions(SaveJob& job) {
  job.storage->Fail({.op = StorageOp::kCreateDirectories, .name = "final/", .persists = true});
}

// The promotions that ended on this rank.
std::vector<Promotion> Wait(SaveJob& job) {
  EXPECT_TRUE(job.saver->WaitForPromotions(kLong));
  auto promotions = job.saver->TakePromotions();
  job.Barrier();
  return promotions;
}

// Committed on local storage, and nobody promotes it any more.
Result<CommitInfo> SaveUnpromoted(SaveJob& job) {
  HoldPromotions(job);
  auto saved = SaveStaged(job, 1);
  Wait(job);
  job.storage->Heal();
  return saved;
}

std::vector<std::string> NamesIn(const SaveJob& job, const std::string& path) {
  std::vector<std::string> names;
  const auto directory = job.posix->OpenDirectory(path);
  if (!directory.ok()) return names;
  const auto entries = (*directory)->List().value();
  for (const EntryInfo& entry : entries) {
    if (entry.name != "sealpoint.staged") names.push_back(entry.name);
  }
  return names;
}

std::string NameOf(const CommitInfo& info) { return SeriesDirectoryName(info.step, info.attempt); }

Result<ResumedPromotions> Resume(SaveJob& job, int keep_local = 0) {
  return ResumePromotions(job.comm, {.local = Local(job), .final_series = job.path("final")},
                          {.storage = job.storage, .keep_local = keep_local, .deadline = kLong});
}

TEST(SaveStagedTest, IsPromotedBehindTheSave) {
  OnJobs([](SaveJob& job) {
    for (const std::uint64_t step : {1u, 2u}) {
      const auto saved = SaveStaged(job, step);
      ASSERT_TRUE(saved.ok()) << saved.error().ToString();
      EXPECT_EQ(saved->sequence, step);
      EXPECT_EQ(saved->directory, JoinPath(job.path("final"), NameOf(*saved)));
      const auto promotions = Wait(job);
      ASSERT_THAT(promotions, SizeIs(1));
      EXPECT_TRUE(promotions[0].status.ok()) << promotions[0].status.ToString();
      EXPECT_EQ(promotions[0].directory, saved->directory);
      EXPECT_EQ(FindDamage(job.posix, saved->directory), "");
      EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), IsEmpty());
    }
  });
}

TEST(SaveStagedTest, EachNodeCanProveItsPart) {
  OnJobs([](SaveJob& job) {
    HoldPromotions(job);
    const auto saved = SaveStaged(job, 1);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    const auto held = Wait(job);
    ASSERT_THAT(held, SizeIs(1));
    EXPECT_EQ(held[0].status.code(), Code::kIo);
    std::set<std::string> blobs;
    for (int node = 0; node < NodeCount(job); ++node) {
      const auto names = NamesIn(job, JoinPath(Copies(job, Node(job, node)), NameOf(*saved)));
      EXPECT_EQ(std::count(names.begin(), names.end(), "COMMIT"), 1) << node;
      for (const std::string& name : names) {
        if (name.ends_with(".blob")) EXPECT_TRUE(blobs.insert(name).second);
      }
    }
    EXPECT_EQ(blobs.size(), saved->blob_count);
    job.Barrier();
    // The next one follows on from what is only local, and takes it along.
    job.storage->Heal();
    const auto next = SaveStaged(job, 2);
    ASSERT_TRUE(next.ok()) << next.error().ToString();
    EXPECT_EQ(next->parent, saved->attempt);
    EXPECT_THAT(Wait(job), SizeIs(2));
    for (const auto& info : {*saved, *next}) EXPECT_EQ(FindDamage(job.posix, info.directory), "");
  });
}

// A new job, of which each rank looks at its node: what the old one left is promoted, by ranks that
// did not write it as well.
TEST(SaveStagedTest, IsPromotedByTheNextJob) {
  OnJobs([](SaveJob& job) {
    const auto saved = SaveUnpromoted(job);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    // One node got no marker: the power failed before it published its own.
    const std::string last = JoinPath(Copies(job, Node(job, NodeCount(job) - 1)), NameOf(*saved));
    if (job.rank() == 0 && NodeCount(job) > 1) {
      ASSERT_TRUE(job.posix->OpenDirectory(last).value()->Remove("COMMIT").ok());
    }
    job.Barrier();
    for (const std::size_t count : {1u, 0u}) {
      const auto resumed = Resume(job);
      ASSERT_TRUE(resumed.ok()) << resumed.error().ToString();
      EXPECT_THAT(resumed->promoted, SizeIs(count));
      EXPECT_THAT(resumed->skipped, IsEmpty());
      EXPECT_EQ(FindDamage(job.posix, saved->directory), "");
      job.Barrier();
    }
    EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), IsEmpty());
  });
}

// R-STG-08: who published may have died before the sync, and a file may be lost since.
TEST(SaveStagedTest, CopiesStayUntilTheFinalOneIsWholeAndDurable) {
  OnJobs([](SaveJob& job) {
    const auto saved = SaveUnpromoted(job);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    ASSERT_TRUE(Resume(job, 1).ok());
    const auto copies = NamesIn(job, Copies(job, Local(job)));
    EXPECT_THAT(copies, SizeIs(1));
    job.Barrier();
    job.storage->Fail({.op = StorageOp::kSyncDirectory, .name = "final/", .nth = 0});
    ASSERT_TRUE(Resume(job).ok());
    EXPECT_EQ(NamesIn(job, Copies(job, Local(job))), copies);
    job.Barrier();
    job.storage->Heal();
    Bytes blob;
    std::string name;
    if (job.rank() == 0) {
      for (const std::string& one : NamesIn(job, saved->directory)) {
        if (one.ends_with(".blob")) name = one;
      }
      blob = ReadWholeFile(*job.posix, saved->directory, name);
      ReplaceFile(*job.posix, saved->directory, name, nullptr);
    }
    job.Barrier();
    ASSERT_TRUE(Resume(job).ok());
    EXPECT_EQ(NamesIn(job, Copies(job, Local(job))), copies);
    job.Barrier();
    if (job.rank() == 0) ReplaceFile(*job.posix, saved->directory, name, &blob);
    job.Barrier();
    ASSERT_TRUE(Resume(job).ok());
    job.Barrier();  // ranks of one node remove one copy
    EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), IsEmpty());
  });
}

// R-SER-23, R-STG-07: it may be the newest of all, and nobody begins again behind an older one
// without a word.
TEST(SaveStagedTest, AMarkerThatIsNotReadIsNotPassedOverInSilence) {
  OnJobs([](SaveJob& job) {
    const auto saved = SaveUnpromoted(job);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    const std::string local = JoinPath(Copies(job, Local(job)), NameOf(*saved));
    job.Barrier();
    if (job.is_last()) job.storage->Fail({.op = StorageOp::kRead, .path = "COMMIT", .nth = 0});
    const auto unread = Resume(job);
    EXPECT_THAT(unread.status(), HasCode(Code::kIo));
    EXPECT_EQ(unread.error().place().rank, job.size() - 1);
    job.storage->Heal();
    job.Barrier();
    if (job.is_last()) {
      const Bytes garbage(512);
      ReplaceFile(*job.posix, local, "COMMIT", &garbage);
    }
    job.Barrier();
    const auto damaged = Resume(job);
    ASSERT_TRUE(damaged.ok()) << damaged.error().ToString();
    const auto& skipped = damaged->skipped;
    const auto is_it = [&](const Promotion& one) {
      return one.directory == JoinPath(Copies(job, Node(job, NodeCount(job) - 1)), NameOf(*saved));
    };
    EXPECT_TRUE(std::any_of(skipped.begin(), skipped.end(), is_it));
  });
}

TEST(SaveStagedTest, IsPassedOverWithoutAllItsNodes) {
  OnJobs(
      [](SaveJob& job) {
        const auto saved = SaveUnpromoted(job);
        ASSERT_TRUE(saved.ok()) << saved.error().ToString();
        const auto resumed =
            ResumePromotions(job.comm,
                             {.local = job.rank() / 2 == 0 ? Local(job) : job.path("new_node"),
                              .final_series = job.path("final")},
                             {.storage = job.storage, .deadline = kLong});
        ASSERT_TRUE(resumed.ok()) << resumed.error().ToString();
        EXPECT_THAT(resumed->promoted, IsEmpty());
        ASSERT_THAT(resumed->skipped, SizeIs(1));
        EXPECT_THAT(resumed->skipped[0].status, FailsRule(Code::kIncomplete, "R-STG-07"));
        job.ExpectSameOnAllRanks(resumed->skipped[0].status);
        EXPECT_THAT(NamesIn(job, job.path("final")), IsEmpty());
      },
      3);
}

// Broadcasts of a staged save that succeeds: the announcement, index and marker, the verdict.
TEST(SaveStagedTest, ARankWithoutIndexAndMarkerNamesItsPhase) {
  OnJobs(
      [](SaveJob& job) {
        job.comm.BreakAfterBroadcast(2);
        const Status status = SaveStaged(job, 1).status();
        EXPECT_THAT(status, HasCode(Code::kTimeout));
        EXPECT_EQ(OutcomeIsUnknown(status), job.rank() != 0);
        if (job.rank() != 0) EXPECT_THAT(status.message(), HasSubstr("phase agree"));
        job.Barrier();
      },
      2);
}

// One rank's local disk fails in some way: the save fails on all of them, nothing is left in either
// place, and the next one is promoted.
TEST(SaveStagedTest, ALocalFailureIsThatOfOneSave) {
  const std::vector<std::function<void(FailingStorage&)>> failures = {
      [](FailingStorage& storage) { storage.LimitBytes(100, ".blob"); },
      [](FailingStorage& storage) { storage.Claim(SpaceInfo{.free_bytes = 10}); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kProbe}); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kSyncDirectory}); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kStat, .name = ".blob"}); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kCreate, .name = ".index"}); }};
  OnJobs([&](SaveJob& job) {
    for (std::size_t i = 0; i < 2 * failures.size(); ++i) {
      const int failing = i % 2 == 0 ? job.size() - 1 : 0;
      if (job.rank() == failing) failures[i / 2](*job.storage);
      const auto saved = SaveStaged(job, 1);
      ASSERT_FALSE(saved.ok()) << i;
      job.ExpectSameOnAllRanks(saved.status());
      EXPECT_EQ(saved.error().place().rank, failing) << i;
      EXPECT_EQ(saved.error().code(), i / 2 < 2 ? Code::kNoSpace : Code::kIo) << i;
      job.Barrier();
      EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), IsEmpty()) << i;
      job.storage->Heal();
      job.storage->Claim(SpaceInfo{.free_bytes = kGiB});
      job.Barrier();
    }
    ASSERT_TRUE(SaveStaged(job, 2).ok());
    EXPECT_TRUE(Wait(job).back().status.ok());
  });
}

TEST(SaveStagedTest, DamageOnLocalStorageIsNeverPublished) {
  OnJobs(
      [](SaveJob& job) {
        const bool is_damaged = job.rank() == 0;
        if (is_damaged) {
          job.storage->SetReadHook([](std::string_view name, std::uint64_t, MutableByteSpan bytes) {
            if (name.ends_with(".blob") && bytes.size() > 4096) bytes[200] ^= std::byte{1};
          });
        }
        const auto saved = SaveStaged(job, 1);
        ASSERT_TRUE(saved.ok()) << saved.error().ToString();
        EXPECT_TRUE(job.saver->WaitForPromotions(kLong));
        const auto promotions = job.saver->TakePromotions();
        ASSERT_THAT(promotions, SizeIs(1));
        const Status& status = promotions[0].status;
        if (is_damaged) {
          EXPECT_EQ(status.code(), Code::kCorrupt) << status.ToString();
          EXPECT_THAT(status.place().path, HasSubstr("node0"));
        } else {
          EXPECT_THAT(status, FailsRule(Code::kIncomplete, "R-STG-10"));
          EXPECT_THAT(status.message(), HasSubstr("node0"));
        }
        job.Barrier();
        const auto names = NamesIn(job, saved->directory);
        EXPECT_EQ(std::count(names.begin(), names.end(), "COMMIT"), 0);
        job.Barrier();
      },
      3);
}

// R-STG-11: one that would be too many tries again what failed, and then fails alone.
TEST(SaveStagedTest, WhatIsNotPromotedIsBounded) {
  OnJobs([](SaveJob& job) {
    job.saver =
        Saver::Create(*job.engine, job.comm, {.unpromoted_max = 2, .unpromoted_wait = kLong})
            .value();
    HoldPromotions(job);
    for (const std::uint64_t step : {1u, 2u}) {
      ASSERT_TRUE(SaveStaged(job, step).ok());
      Wait(job);
    }
    const auto refused = SaveStaged(job, 3);
    ASSERT_THAT(refused.status(), FailsRule(Code::kNoSpace, "R-STG-11"));
    job.ExpectSameOnAllRanks(refused.status());
    EXPECT_THAT(refused.error().message(), HasSubstr("the oldest, of step 1, was committed"));
    EXPECT_THAT(refused.error().message(), HasSubstr("injected"));
    EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), SizeIs(2));
    job.storage->Heal();
    job.Barrier();
    const auto saved = SaveStaged(job, 3);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    EXPECT_TRUE(Wait(job).back().status.ok());
    EXPECT_THAT(NamesIn(job, job.path("final")), SizeIs(3));
    EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), IsEmpty());
  });
}

// One rank alone has no room: no rank looks at the final series, nor makes a local place.
TEST(SaveStagedTest, ARankWithoutRoomFailsTheSaveOfAll) {
  OnJobs([](SaveJob& job) {
    job.saver = Saver::Create(*job.engine, job.comm,
                              {.unpromoted_max = job.is_last() ? 1 : 100, .unpromoted_wait = kLong})
                    .value();
    HoldPromotions(job);
    ASSERT_TRUE(SaveStaged(job, 1).ok());
    Wait(job);
    job.storage->ClearLog();
    const auto refused = SaveStaged(job, 2);
    ASSERT_THAT(refused.status(), FailsRule(Code::kNoSpace, "R-STG-11"));
    job.ExpectSameOnAllRanks(refused.status());
    EXPECT_EQ(refused.error().place().rank, job.size() - 1);
    EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), SizeIs(1));
    for (const StorageCall& call : job.storage->calls()) {
      EXPECT_FALSE(job.size() == 1 && call.op == StorageOp::kOpenDirectory &&
                   call.name.ends_with("/final"))
          << "rank 0 knows that nothing comes of it";
    }
    job.storage->Heal();
    job.Barrier();
  });
}

// Whatever fails on one rank, in whatever step of a resumption, is the answer on all of them, or
// the reason why a checkpoint was passed over.
TEST(SaveStagedTest, AResumptionThatFailsOnOneRankFailsOnAll) {
  OnJobs([](SaveJob& job) {
    const auto saved = SaveUnpromoted(job);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    const auto resume = [&](const StorageFault& fault) {
      if (job.is_last()) job.storage->Fail(fault);
      auto resumed = Resume(job);
      job.storage->Heal();
      job.Barrier();
      return resumed;
    };
    const auto unlisted = resume({.op = StorageOp::kList, .name = Local(job), .nth = 0});
    ASSERT_THAT(unlisted.status(), HasCode(Code::kIo));
    job.ExpectSameOnAllRanks(unlisted.status());
    const std::string local = JoinPath(Copies(job, Local(job)), NameOf(*saved));
    // To see what is there, and to copy it.
    const auto unopened = [&](int nth) {
      return StorageFault{
          .op = StorageOp::kOpenDirectory, .name = local, .nth = nth, .persists = true};
    };
    for (const StorageFault& fault : {unopened(1), unopened(2)}) {
      if (job.size() > 2 && fault.nth == 2) break;  // the others wait for seconds to be told
      const auto resumed = resume(fault);
      ASSERT_TRUE(resumed.ok()) << resumed.error().ToString();
      EXPECT_THAT(resumed->promoted, IsEmpty());
      ASSERT_THAT(resumed->skipped, SizeIs(1));
      EXPECT_THAT(resumed->skipped[0].status.message(), HasSubstr("injected"));
      job.ExpectSameOnAllRanks(resumed->skipped[0].status);
    }
    const auto other = ResumePromotions(
        job.comm, {.local = Local(job), .final_series = job.path(job.is_last() ? "x" : "final")},
        {.storage = job.storage, .deadline = kLong});
    if (job.size() > 1) {
      EXPECT_FALSE(other.ok());
      job.ExpectSameOnAllRanks(other.status());
    }
    job.Barrier();
  });
}

// The ranks lose each other: no checkpoint is passed over for that.
TEST(SaveStagedTest, AResumptionWithoutTheOthersEnds) {
  OnJobs([](SaveJob& job) {
    ASSERT_TRUE(SaveUnpromoted(job).ok());
    job.comm.BreakAfterAllGather(2);  // of the listings, and of what is on each node
    const auto resumed = Resume(job);
    ASSERT_THAT(resumed.status(), HasCode(Code::kTimeout));
    EXPECT_THAT(resumed.error().message(), HasSubstr("resumption of promotions to "));
    job.Barrier();
  });
}

TEST(SaveStagedTest, AFailureThatNobodyTookIsTold) {
  OnJobs([](SaveJob& job) {
    std::vector<std::string> told;
    job.saver =
        Saver::Create(*job.engine, job.comm,
                      {.on_unobserved_failure = [&](std::string_view what,
                                                    const Status&) { told.emplace_back(what); }})
            .value();
    HoldPromotions(job);
    const auto saved = SaveStaged(job, 1);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    EXPECT_TRUE(job.saver->WaitForPromotions(kLong));
    job.saver.reset();
    EXPECT_THAT(told, ::testing::ElementsAre("promotion of " + saved->directory));
    job.Barrier();
  });
}

TEST(SaveStagedTest, RefusesOptionsAndAMarkerInTheFinalPlace) {
  OnJobs([](SaveJob& job) {
    for (const SaverOptions& options :
         {SaverOptions{.keep_local = -1}, SaverOptions{.promote_threads = -1},
          SaverOptions{.unpromoted_max = 0}, SaverOptions{.promote_memory_bytes = 4096},
          SaverOptions{.unpromoted_wait = std::chrono::milliseconds(-1)},
          SaverOptions{.promote_deadline = std::chrono::milliseconds(-1)}}) {
      EXPECT_EQ(Saver::Create(*job.engine, job.comm, options).status().code(),
                Code::kInvalidArgument);
    }
    // A directory that has a marker in the final place.
    const SaveTarget final = SaveTarget::Directory(job.path("ckpt"));
    ASSERT_TRUE(job.Save(UsualDeclaration(job.comm), final).ok());
    job.Barrier();
    const Status again =
        job.Save(UsualDeclaration(job.comm), SaveTarget::Staged(Local(job), final)).status();
    EXPECT_THAT(again, FailsRule(Code::kAlreadyExists, "R-CMT-01"));
    EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), IsEmpty());
  });
}

// R-STG-12, on one rank alone: its own series, what is in it, and what holds it.
TEST(SaveStagedTest, PlacesThatOverlapAreRefusedOnAllRanks) {
  OnJobs([](SaveJob& job) {
    ASSERT_TRUE(
        job.Save(UsualDeclaration(job.comm), SaveTarget::InSeries(job.path("final")), {.step = 1})
            .ok());
    const auto before = NamesIn(job, job.path("final"));
    for (const std::string& place :
         {job.path("final"), job.path("final/local"), job.path("x/../final/"), job.path("")}) {
      const std::string local = job.is_last() ? place : Local(job);
      const SaveTarget series = SaveTarget::InSeries(job.path("final"));
      const Status saved =
          job.Save(UsualDeclaration(job.comm), SaveTarget::Staged(local, series), {.step = 2})
              .status();
      EXPECT_THAT(saved, FailsRule(Code::kInvalidArgument, "R-STG-12")) << place;
      const Status resumed =
          ResumePromotions(job.comm, {.local = local, .final_series = job.path("final")},
                           {.storage = job.storage})
              .status();
      EXPECT_THAT(resumed, FailsRule(Code::kInvalidArgument, "R-STG-12")) << place;
      job.ExpectSameOnAllRanks(resumed);
      EXPECT_EQ(NamesIn(job, job.path("final")), before);
      EXPECT_THAT(NamesIn(job, Local(job)), IsEmpty());
      job.Barrier();
    }
  });
}

// R-STG-13: copies of another series, and checkpoints that no series has a record of, are neither
// promoted nor removed; what may be of this one is named.
TEST(SaveStagedTest, OnlyCopiesOfTheSeriesAreTaken) {
  OnJobs([](SaveJob& job) {
    const auto saved = SaveUnpromoted(job);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    const auto resume = [&](const std::string& series) {
      return ResumePromotions(job.comm, {.local = Local(job), .final_series = job.path(series)},
                              {.storage = job.storage, .deadline = kLong})
          .value();
    };
    const ResumedPromotions of_another = resume("other");
    EXPECT_THAT(of_another.promoted, IsEmpty());
    EXPECT_THAT(of_another.skipped, IsEmpty());
    job.Barrier();
    if (job.rank() == 0) {
      StoreFiles(*job.posix, JoinPath(Local(job), "own"), BuildInSeries(1, 7, 9).files);
    }
    job.Barrier();
    const ResumedPromotions strays = resume("other");
    EXPECT_THAT(strays.promoted, IsEmpty());
    ASSERT_FALSE(strays.skipped.empty());
    EXPECT_THAT(strays.skipped[0].status.message(), HasSubstr("have no record"));
    EXPECT_THAT(resume("final").promoted, SizeIs(1));
    job.Barrier();
    EXPECT_THAT(NamesIn(job, Copies(job, Local(job))), IsEmpty());
    EXPECT_EQ(NamesIn(job, JoinPath(Node(job, 0), "own")).size(), 3u);
    job.Barrier();
  });
}

// A link in the series to the copy itself is no other place.
TEST(SaveStagedTest, ACopyStaysIfTheFinalOneIsTheSamePlace) {
  OnJobs([](SaveJob& job) {
    const auto saved = SaveUnpromoted(job);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    const std::string copy = JoinPath(Copies(job, Node(job, 0)), NameOf(*saved));
    if (job.rank() == 0) {
      ASSERT_TRUE(job.posix->CreateDirectories(job.path("final")).ok());
      std::filesystem::create_directory_symlink(copy, saved->directory);
    }
    job.Barrier();
    ASSERT_TRUE(Resume(job).ok());
    EXPECT_FALSE(NamesIn(job, copy).empty());
    job.Barrier();
  });
}

}  // namespace
}  // namespace sealpoint::testing
