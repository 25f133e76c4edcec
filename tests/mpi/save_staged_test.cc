// SPDX-License-Identifier: Apache-2.0
//
// Saves that are committed on storage of each node, two ranks to a node, and promoted to a series
// that all see.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/series.h"
#include "sealpoint/staged_saves.h"
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
int NodeCount(const SaveJob& job) { return (job.size() + 1) / 2; }

Result<CommitInfo> SaveStaged(SaveJob& job, std::uint64_t step) {
  return job.Save(UsualDeclaration(job.comm),
                  SaveTarget::Staged(Local(job), SaveTarget::InSeries(job.path("final"))),
                  {.step = step});
}

// Where they fail until the storage is healed, so that what is local can be looked at.
void HoldPromotions(SaveJob& job) {
  job.storage->Fail({.op = StorageOp::kCreateDirectories, .name = "final", .persists = true});
}

// The promotions that ended on this rank.
std::vector<Promotion> Wait(SaveJob& job) {
  EXPECT_TRUE(job.saver->WaitForPromotions(kLong));
  auto promotions = job.saver->TakePromotions();
  job.Barrier();
  return promotions;
}

std::vector<std::string> NamesIn(const SaveJob& job, const std::string& path) {
  std::vector<std::string> names;
  const auto directory = job.posix->OpenDirectory(path);
  if (!directory.ok()) return names;
  const auto entries = (*directory)->List().value();
  for (const EntryInfo& entry : entries) names.push_back(entry.name);
  return names;
}

std::string NameOf(const CommitInfo& info) { return SeriesDirectoryName(info.step, info.attempt); }

Result<ResumedPromotions> Resume(SaveJob& job) {
  return ResumePromotions(job.comm, Local(job), job.path("final"),
                          {.storage = job.storage, .deadline = kLong});
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
      EXPECT_THAT(NamesIn(job, Local(job)), IsEmpty());
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
      const auto names = NamesIn(job, JoinPath(Node(job, node), NameOf(*saved)));
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
    HoldPromotions(job);
    const auto saved = SaveStaged(job, 1);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    Wait(job);
    job.storage->Heal();
    // One node got no marker: the power failed before it published its own.
    const std::string last = JoinPath(Node(job, NodeCount(job) - 1), NameOf(*saved));
    if (job.rank() == 0 && NodeCount(job) > 1) {
      ASSERT_TRUE(job.posix->OpenDirectory(last).value()->Remove("COMMIT").ok());
    }
    job.Barrier();
    for (const std::size_t count : {1u, 0u}) {
      const auto resumed = Resume(job);
      ASSERT_TRUE(resumed.ok()) << resumed.error().ToString();
      EXPECT_THAT(resumed->promoted, SizeIs(count));
      EXPECT_THAT(resumed->passed_over, IsEmpty());
      EXPECT_EQ(FindDamage(job.posix, saved->directory), "");
      job.Barrier();
    }
    EXPECT_THAT(NamesIn(job, Local(job)), IsEmpty());
  });
}

TEST(SaveStagedTest, IsPassedOverWithoutAllItsNodes) {
  OnJobs(
      [](SaveJob& job) {
        HoldPromotions(job);
        const auto saved = SaveStaged(job, 1);
        ASSERT_TRUE(saved.ok()) << saved.error().ToString();
        Wait(job);
        job.storage->Heal();
        const auto resumed =
            ResumePromotions(job.comm, job.rank() / 2 == 0 ? Local(job) : job.path("new_node"),
                             job.path("final"), {.storage = job.storage, .deadline = kLong});
        ASSERT_TRUE(resumed.ok()) << resumed.error().ToString();
        EXPECT_THAT(resumed->promoted, IsEmpty());
        ASSERT_THAT(resumed->passed_over, SizeIs(1));
        EXPECT_THAT(resumed->passed_over[0].status, FailsRule(Code::kIncomplete, "R-STG-07"));
        job.ExpectSameOnAllRanks(resumed->passed_over[0].status);
        EXPECT_THAT(NamesIn(job, job.path("final")), IsEmpty());
      },
      3);
}

// One rank's local disk fails in some way: the save fails on all of them, nothing is left in either
// place, and the next one is promoted.
TEST(SaveStagedTest, ALocalFailureIsThatOfOneSave) {
  const std::vector<std::function<void(FailingStorage&)>> failures = {
      [](FailingStorage& storage) { storage.LimitBytes(100, ".blob"); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kProbe}); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kSyncDirectory}); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kStat, .name = ".blob"}); },
      [](FailingStorage& storage) { storage.Fail({.op = StorageOp::kCreate, .name = ".index"}); },
      [](FailingStorage& storage) { storage.Claim(SpaceInfo{.free_bytes = 10}); }};
  OnJobs([&](SaveJob& job) {
    for (std::size_t i = 0; i < failures.size(); ++i) {
      if (job.is_last()) failures[i](*job.storage);
      const auto saved = SaveStaged(job, 1);
      ASSERT_FALSE(saved.ok()) << i;
      job.ExpectSameOnAllRanks(saved.status());
      EXPECT_EQ(saved.error().place().rank, job.size() - 1) << i;
      job.Barrier();
      EXPECT_THAT(NamesIn(job, Local(job)), IsEmpty()) << i;
      job.storage->Heal();
      job.Barrier();
    }
    job.storage->Claim(SpaceInfo{.free_bytes = kGiB});
    ASSERT_TRUE(SaveStaged(job, 2).ok());
    EXPECT_TRUE(Wait(job).back().status.ok());
  });
}

TEST(SaveStagedTest, DamageOnLocalStorageIsNeverPublished) {
  OnJobs([](SaveJob& job) {
    const bool is_damaged = job.rank() == 0;
    if (is_damaged) {
      job.storage->SetReadHook([](std::string_view name, std::uint64_t, MutableByteSpan bytes) {
        if (name.ends_with(".blob") && bytes.size() > 4096) bytes[200] ^= std::byte{1};
      });
    }
    // The others would wait for the blob of rank 0.
    const auto saved = SaveStaged(job, 1);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    if (is_damaged) {
      EXPECT_TRUE(job.saver->WaitForPromotions(kLong));
      const auto promotions = job.saver->TakePromotions();
      ASSERT_THAT(promotions, SizeIs(1));
      EXPECT_EQ(promotions[0].status.code(), Code::kCorrupt) << promotions[0].status.ToString();
      EXPECT_THAT(promotions[0].status.place().path, HasSubstr("node0"));
    }
    job.Barrier();
    const auto names = NamesIn(job, saved->directory);
    EXPECT_EQ(std::count(names.begin(), names.end(), "COMMIT"), 0);
    job.Barrier();
  });
}

TEST(SaveStagedTest, AFailureThatNobodyTookIsTold) {
  OnJobs([](SaveJob& job) {
    std::vector<std::string> told;
    job.saver =
        Saver::Create(*job.engine, job.comm,
                      {.on_unheard_failure = [&](std::string_view what,
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
         {SaverOptions{.keep_local = -1}, SaverOptions{.promote_threads = 0},
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
    EXPECT_THAT(NamesIn(job, Local(job)), IsEmpty());
  });
}

}  // namespace
}  // namespace sealpoint::testing
