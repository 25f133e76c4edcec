// SPDX-License-Identifier: Apache-2.0
//
// The newest checkpoint of a series, opened by all ranks. Each has the series in its own memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "sealpoint/collective_reader.h"
#include "sealpoint/series.h"
#include "tests/support/state/collective_load_job.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Job {
  explicit Job(Communicator& communicator) : comm(communicator) {}

  static MiniContainer Container(std::uint8_t number) {
    return BuildInSeries(number, static_cast<std::uint8_t>(number - 1), number);
  }
  void Put(std::uint8_t number) {
    StoreFiles(*memory, "run/" + std::to_string(number), Container(number).files);
  }
  void RemoveBlob(std::uint8_t number) {
    ReplaceFile(*memory, "run/" + std::to_string(number), Container(number).blobs.at(0).name,
                nullptr);
  }
  Result<NewestCheckpoint> Open(bool allow_fallback = false, const std::string& path = "run") {
    return OpenNewest(comm, path, {.open = {.storage = storage}, .allow_fallback = allow_fallback});
  }

  Communicator& comm;
  const std::shared_ptr<Storage> memory = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage = std::make_shared<FailingStorage>(memory);
};

TEST(OpenNewestTest, AnErrorOfOpeningIsThatOfTheCall) {
  OnRanks([](Communicator& comm) {
    Job job(comm);
    job.Put(1);
    const OpenNewestOptions options{.open = {.storage = job.storage, .memory_budget_bytes = 4096}};
    const Status status = OpenNewest(comm, "run", options).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("memory_budget_bytes is 4096"));
  });
}

TEST(OpenNewestTest, OpensTheNewestOnAllRanks) {
  OnRanks([](Communicator& comm) {
    Job job(comm);
    job.Put(1);
    job.Put(2);
    const auto newest = job.Open();
    ASSERT_TRUE(newest.ok()) << newest.error().ToString();
    ASSERT_NE(newest->reader, nullptr);
    EXPECT_EQ(newest->name, "2");
    EXPECT_THAT(newest->skipped, IsEmpty());
    EXPECT_EQ(newest->reader->checkpoint().sequence(), 2u);
    EXPECT_EQ(newest->reader->checkpoint().attempt(), MiniSpec::MakeId(2));
    EXPECT_TRUE(newest->reader->Plan(ReadRequest(), LoadContract::Partial()).ok());
  });
}

TEST(OpenNewestTest, ASeriesWithoutACheckpointIsNoError) {
  OnRanks([](Communicator& comm) {
    Job job(comm);
    auto newest = job.Open();
    ASSERT_TRUE(newest.ok()) << newest.error().ToString();
    EXPECT_EQ(newest->reader, nullptr);
    EXPECT_EQ(newest->name, "");
    // Nor is one with an attempt that was never committed.
    job.Put(1);
    ReplaceFile(*job.memory, "run/1", "COMMIT", nullptr);
    newest = job.Open();
    ASSERT_TRUE(newest.ok()) << newest.error().ToString();
    EXPECT_EQ(newest->reader, nullptr);
  });
}

// A fresh start must never follow from these.
TEST(OpenNewestTest, WhatCannotBeReadIsAnErrorOnAllRanks) {
  OnRanks([](Communicator& comm) {
    Job job(comm);
    job.Put(1);
    for (const StorageOp op : {StorageOp::kOpenDirectory, StorageOp::kList, StorageOp::kRead}) {
      if (comm.rank() == 0) {
        job.storage->Fail({.op = op, .error = {Code::kNoSpace, "injected"}});
      }
      const auto newest = job.Open();
      ASSERT_FALSE(newest.ok()) << static_cast<int>(op);
      EXPECT_EQ(newest.error().code(), Code::kNoSpace) << newest.error().ToString();
      EXPECT_EQ(newest.error().place().rank, 0);
      job.storage->Heal();
    }
  });
}

TEST(OpenNewestTest, GoesBackOnlyIfAskedAndSaysSo) {
  OnRanks([](Communicator& comm) {
    Job job(comm);
    for (std::uint8_t i = 1; i <= 3; ++i) job.Put(i);
    job.RemoveBlob(3);
    const auto refused = job.Open();
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::kIncomplete);
    const auto newest = job.Open(true);
    ASSERT_TRUE(newest.ok()) << newest.error().ToString();
    EXPECT_EQ(newest->name, "2");
    ASSERT_THAT(newest->skipped, SizeIs(1));
    EXPECT_EQ(newest->skipped[0].name, "3");
    EXPECT_EQ(newest->skipped[0].problem.code(), Code::kIncomplete);
    EXPECT_EQ(newest->skipped[0].problem.place().rule, "R-BLB-01");
    // With nothing to go back to, training does not begin anew.
    job.RemoveBlob(1);
    job.RemoveBlob(2);
    const auto none = job.Open(true);
    ASSERT_FALSE(none.ok());
    EXPECT_EQ(none.error().code(), Code::kIncomplete);
    EXPECT_THAT(none.error().message(), HasSubstr("no checkpoint to fall back to"));
  });
}

TEST(OpenNewestTest, RanksThatNameDifferentSeriesAreToldSo) {
  OnRanks([](Communicator& comm) {
    if (comm.size() == 1) return;
    Job job(comm);
    job.Put(1);
    const auto newest = job.Open(false, comm.rank() == comm.size() - 1 ? "ran" : "run");
    ASSERT_FALSE(newest.ok());
    EXPECT_EQ(newest.error().code(), Code::kInvalidArgument);
    EXPECT_THAT(newest.error().message(), HasSubstr("series is run on rank 0, ran on rank "));
    EXPECT_EQ(newest.error().place().rank, comm.size() - 1);
  });
}

TEST(OpenNewestTest, ARankThatHasFailedFailsTheCallOfAll) {
  OnRanks([](Communicator& comm) {
    Job job(comm);
    job.Put(1);
    const bool is_last = comm.rank() == comm.size() - 1;
    const Status own = is_last ? Status(Code::kNotFound, "no settings") : Status();
    // Its path would differ, too.
    const auto newest =
        OpenNewest(comm, is_last ? "" : "run", {.open = {.storage = job.storage}, .failure = own});
    EXPECT_EQ(newest.status().code(), Code::kNotFound);
    EXPECT_EQ(newest.status().message(), "no settings");
    EXPECT_EQ(newest.status().place().rank, comm.size() - 1);
    EXPECT_TRUE(job.Open().ok());  // the ranks are still in step
  });
}

// Between the choice and the opening it is deleted, behind a newer one.
TEST(OpenNewestTest, OneThatIsDeletedMeanwhileIsNotMissed) {
  OnRanks([](Communicator& comm) {
    Job job(comm);
    for (std::uint8_t i = 1; i <= 3; ++i) job.Put(i);
    bool is_checked = false;
    bool is_deleted = false;
    if (comm.rank() == 0) {
      job.storage->SetHook([&](StorageOp op, std::string_view name) {
        if (op == StorageOp::kStat) is_checked = true;
        if (op != StorageOp::kOpenDirectory || name != "run/3" || !is_checked || is_deleted) return;
        is_deleted = true;
        job.Put(4);
        EXPECT_TRUE(Series("run", job.memory).Delete("3").ok());
      });
    } else {
      job.Put(4);
    }
    const auto newest = job.Open();
    ASSERT_TRUE(newest.ok()) << newest.error().ToString();
    EXPECT_EQ(newest->name, "4");
  });
}

}  // namespace
}  // namespace sealpoint::testing
