// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/series/series_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Checkpoints "1" to "5", of which "5" is the newest.
class PruneTest : public SeriesTest {
 protected:
  PruneTest() {
    for (std::uint8_t i = 1; i <= 5; ++i) {
      Put(std::to_string(i), i, static_cast<std::uint8_t>(i - 1), i);
    }
  }
  std::vector<std::string> Left() const {
    std::vector<std::string> names;
    const auto directory = memory_->OpenDirectory(InPlace("series")).value();
    for (const EntryInfo& entry : directory->List().value()) names.push_back(entry.name);
    return names;
  }
  static std::vector<std::string> DeletedIn(const PruneReport& report) {
    std::vector<std::string> names;
    for (const PruneDecision& decision : report.decisions) {
      if (decision.is_deleted) names.push_back(decision.entry.name);
    }
    return names;
  }
  std::uint64_t SizeOf(std::uint8_t attempt) {
    std::uint64_t size = 0;
    const auto directory = memory_->OpenDirectory(Path(std::to_string(attempt))).value();
    for (const EntryInfo& entry : directory->List().value()) size += entry.size_bytes;
    return size;
  }
};

TEST_F(PruneTest, DeletesWhatThePolicyDoesNotKeep) {
  const std::uint64_t size = SizeOf(1) + SizeOf(2) + SizeOf(3);
  const PruneReport report = series_.Prune({});
  EXPECT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_THAT(Left(), ElementsAre("4", "5"));
  EXPECT_THAT(DeletedIn(report), ElementsAre("3", "2", "1"));
  EXPECT_THAT(report.decisions, SizeIs(5));
  EXPECT_EQ(report.bytes_freed, size);
  EXPECT_EQ(series_.Newest().value().entry.name, "5");
  EXPECT_TRUE(series_.Prune({}).status.ok()) << "nothing left to do";
}

TEST_F(PruneTest, ADryRunChangesNothing) {
  const std::uint64_t size = SizeOf(1) + SizeOf(2) + SizeOf(3);
  const PruneReport report = series_.Prune({}, {.dry_run = true});
  EXPECT_TRUE(report.status.ok());
  EXPECT_THAT(storage_->changes(), IsEmpty());
  EXPECT_THAT(DeletedIn(report), IsEmpty());
  EXPECT_EQ(report.bytes_freed, size);
  EXPECT_TRUE(report.decisions.at(1).keep);
  EXPECT_FALSE(report.decisions.at(2).keep);
  EXPECT_THAT(report.decisions.at(2).reasons, ElementsAre("no rule keeps it"));
}

// What another directory shares is not freed, and counts once.
TEST_F(PruneTest, SharedFilesCountOnce) {
  if (IsInObjects()) GTEST_SKIP() << "an object has one name";
  const std::string blob = BlobOf(1);
  const auto shared = memory_->OpenDirectory(Path("3")).value();
  ASSERT_TRUE(shared->Remove(blob).ok());  // these small ones have one name
  ASSERT_TRUE(shared->LinkFrom(Path("1"), blob, 9).ok());
  const std::uint64_t blob_size = shared->Stat(blob).value().size_bytes;
  const std::uint64_t all = SizeOf(1) + SizeOf(2) + SizeOf(3) + SizeOf(4) + SizeOf(5) - blob_size;
  EXPECT_EQ(series_.Prune({.max_bytes = all}).bytes_freed, 0u);
  EXPECT_EQ(series_.Prune({}, {.dry_run = true}).bytes_freed, all - SizeOf(4) - SizeOf(5));
  const std::uint64_t with_first = SizeOf(1) - blob_size;
  const PruneReport report = series_.Prune({.max_bytes = all - with_first});
  EXPECT_THAT(Left(), ElementsAre("2", "3", "4", "5"));
  EXPECT_EQ(report.bytes_freed, with_first) << "of its own alone";
  EXPECT_EQ(series_.Prune({}).bytes_freed, all - with_first - SizeOf(4) - SizeOf(5));
}

TEST_F(PruneTest, WhatCannotBeListedHasNoSizeToBound) {
  for (const int nth : {0, 2}) {  // of the scan as well, or only of its files
    storage_->Fail({.op = StorageOp::kList, .name = Path("1"), .nth = nth});
    const std::uint64_t before = storage_->fault_count();
    EXPECT_FALSE(series_.Prune({.max_bytes = 1}).status.ok()) << nth;
    EXPECT_GT(storage_->fault_count(), before) << nth;
    storage_->Heal();
  }
  EXPECT_THAT(Left(), SizeIs(5));
}

TEST_F(PruneTest, DeletesTheOldestFirst) {
  storage_->Fail({.op = StorageOp::kRemove, .name = ".blob", .nth = 3});
  const PruneReport report = series_.Prune({});
  EXPECT_THAT(report.status, HasCode(Code::kIo));
  EXPECT_THAT(DeletedIn(report), ElementsAre("2", "1"));
  EXPECT_EQ(report.bytes_freed, 2 * SizeOf(4));
  EXPECT_THAT(Left(), ElementsAre("3", "4", "5"));
  storage_->Heal();
  storage_->Fail({.op = StorageOp::kRemove, .name = "COMMIT"});
  Put("6", 6, 5, 6);
  EXPECT_THAT(series_.Prune({}).status, HasCode(Code::kIo));
  EXPECT_THAT(Left(), ElementsAre("3", "4", "5", "6")) << "it stopped at the first error";
}

// Behind a newer one that is durable: its directory is synced before the first name goes.
TEST_F(PruneTest, SyncsANewerOneFirst) {
  storage_->Fail({.op = StorageOp::kSyncDirectory, .name = "5"});
  EXPECT_THAT(series_.Prune({}).status, HasCode(Code::kIo));
  EXPECT_THAT(Left(), SizeIs(5));
  storage_->Heal();
  storage_->ClearLog();
  EXPECT_TRUE(series_.Prune({}).status.ok());
  EXPECT_THAT(storage_->changes().at(0), "sync directory");
  EXPECT_THAT(storage_->changes().at(1), "remove COMMIT");
}

// The other branch counts towards nothing, and stays.
TEST_F(PruneTest, GoesOnAlongTheLineageOfTheNewest) {
  Put("fork", 0x44, 3, 4);
  Put("on", 0x45, 0x44, 5);
  Put("6", 6, 5, 6);
  const PruneReport report = series_.Prune({});
  EXPECT_TRUE(report.status.ok()) << report.status.ToString();
  std::vector<std::string> kept;
  for (const PruneDecision& prune_decision : report.decisions) {
    if (prune_decision.keep) kept.push_back(prune_decision.entry.name);
  }
  EXPECT_THAT(kept, ::testing::UnorderedElementsAre("6", "5", "fork", "on"));
  EXPECT_THAT(series_.Prune({.keep_last = 1}).status,
              FailsRule(Code::kInvalidArgument, "R-SER-14"));
}

TEST_F(PruneTest, NothingIsDeletedIfOneCannotBeRead) {
  const std::vector<StorageFault> faults = {
      {.op = StorageOp::kOpenDirectory, .name = Path("1")},
      {.op = StorageOp::kList, .name = Path("3")},
      {.op = StorageOp::kRead, .name = "COMMIT"},
      {.op = StorageOp::kStat, .name = BlobOf(5)},
      {.op = StorageOp::kRead, .name = ".index", .error = {Code::kNoSpace, "injected"}},
  };
  for (const StorageFault& fault : faults) {
    storage_->Heal();
    storage_->Fail(fault);
    const PruneReport report = series_.Prune({});
    EXPECT_THAT(report.status, HasCode(fault.error.code())) << static_cast<int>(fault.op);
    EXPECT_THAT(report.decisions, IsEmpty());
  }
  EXPECT_THAT(storage_->changes(), IsEmpty());
}

TEST_F(PruneTest, DamagedOnesDoNotCount) {
  ReplaceFile(*memory_, Path("5"), BlobOf(5), nullptr);
  Bytes marker = Container(2, 1, 2).marker();
  marker[100] ^= std::byte{1};
  ReplaceFile(*memory_, Path("2"), "COMMIT", &marker);
  EXPECT_TRUE(series_.Prune({}).status.ok());
  EXPECT_THAT(Left(), ElementsAre("2", "3", "4", "5"));
}

// Beside a saver and another pruning.
TEST_F(PruneTest, LeavesAttemptsAloneAndDoesNotMissWhatAnotherRemoved) {
  PutFile("step-000000000006-06060606", BlobOf(6));
  storage_->SetHook([&](StorageOp op, std::string_view name) {
    if (op != StorageOp::kRemove || name != "COMMIT") return;
    if (memory_->OpenDirectory(Path("2")).ok()) {
      EXPECT_TRUE(Series(InPlace("series"), memory_).Delete("2").ok());
    }
  });
  const PruneReport report = series_.Prune({});
  EXPECT_TRUE(report.status.ok()) << report.status.ToString();
  EXPECT_THAT(Left(), ElementsAre("4", "5", "step-000000000006-06060606"));
  EXPECT_THAT(DeletedIn(report), ElementsAre("3", "1"));
  EXPECT_THAT(report.decisions.at(3).reasons, ::testing::Contains(HasSubstr("meanwhile")));
}

TEST_F(PruneTest, KeepsTheBestByWhatTheIndexSays) {
  const auto put = [&](const std::string& name, std::uint8_t attempt, const std::string& loss,
                       std::uint64_t created_s) {
    MiniSpec spec{.attempt = MiniSpec::MakeId(attempt),
                  .parent = MiniSpec::MakeId(static_cast<std::uint8_t>(attempt - 1)),
                  .sequence = attempt,
                  .created_unix_ns = created_s * 1'000'000'000};
    spec.provenance = {{"metric.loss", loss}};
    StoreFiles(*memory_, Path(name), BuildMini(spec).files);
  };
  put("6", 6, "0.5", 100);
  put("7", 7, "nan", 7300);
  put("8", 8, "0.75", 7200);
  put("9", 9, "2", 7250);
  const RetentionPolicy best{.keep_best = KeepBest{.metric = "metric.loss", .count = 1}};
  const PruneReport report = series_.Prune(best, {.dry_run = true});
  EXPECT_EQ(report.decisions.at(3).entry.name, "6");
  EXPECT_TRUE(report.decisions.at(3).keep);
  EXPECT_FALSE(report.decisions.at(2).keep);
  EXPECT_TRUE(series_.Prune({.keep_per_period = {{std::chrono::hours(1), 9}}}).status.ok());
  EXPECT_THAT(Left(), ElementsAre("6", "8", "9"));
}

TEST_F(PruneTest, KeepsTheLastCheckedOneAndDeletesNothingWithoutOne) {
  const auto put = [&](std::uint8_t attempt, const std::string& state, const std::string& upto) {
    MiniSpec spec{.attempt = MiniSpec::MakeId(attempt),
                  .parent = MiniSpec::MakeId(static_cast<std::uint8_t>(attempt - 1)),
                  .sequence = attempt,
                  .step = attempt};
    spec.provenance = {{"sdc.state", state}, {"sdc.upto", upto}};
    StoreFiles(*memory_, Path(std::to_string(attempt)), BuildMini(spec).files);
  };
  const RetentionPolicy checked{.keep_checked = 1};
  const PruneReport refused = series_.Prune(checked);
  EXPECT_THAT(refused.status, testing::FailsRule(Code::kInvalidArgument, "R-FPR-04"));
  EXPECT_THAT(refused.status.message(), HasSubstr("no checkpoint is checked"));
  put(6, "checked", "5");
  put(7, "checked", "6");
  put(8, "found", "6");
  put(9, "found", "6");
  EXPECT_TRUE(series_.Prune(checked).status.ok());
  EXPECT_THAT(Left(), ElementsAre("6", "8", "9"));
}

// The loop of a training: the newest three, and every hundredth step.
TEST_F(PruneTest, ALoopThatSavesAndPrunesKeepsWhatItSays) {
  for (std::uint8_t i = 6; i <= 12; ++i) {
    Put(std::to_string(i), i, static_cast<std::uint8_t>(i - 1), i);
    EXPECT_TRUE(series_.Prune({.keep_last = 3, .keep_every_n_steps = 104}).status.ok());
    EXPECT_EQ(series_.Newest().value().entry.sequence, i);
  }
  EXPECT_THAT(Left(), ElementsAre("10", "11", "12", "4"));
}

}  // namespace
}  // namespace sealpoint::testing
