// SPDX-License-Identifier: Apache-2.0
//
// Reading: each storage operation fails, and each read is damaged. The result is exactly what was
// saved, or one error that says where.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/format/constants.h"
#include "sealpoint/series.h"
#include "sealpoint/verify.h"
#include "tests/faults/fault_kinds.h"
#include "tests/faults/tiny_state.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr TinyState kState{.generation = 3};
constexpr const char* kDir = "run/ckpt";

// A checkpoint behind a storage that will fail.
struct ReadJob {
  const std::shared_ptr<Storage> memory = MemoryStorage();
  const std::shared_ptr<FailingStorage> storage = std::make_shared<FailingStorage>(memory);
  const CommitInfo info = SaveByHand(*SmallEngine(memory), kDir, kState).value();

  // "" if every byte came back, else what is wrong with what came back.
  Result<std::string> Load(int threads = 1) const {
    const auto checkpoint = Checkpoint::Open(kDir, {.storage = storage});
    if (!checkpoint.ok()) return checkpoint.error();
    return LoadAndCompare(**checkpoint, kState, threads);
  }
};

// A denial (no such file, the file ends here) is taken as the truth.
void ExpectTells(const Status& status, const StorageFault& fault) {
  SCOPED_TRACE(status.ToString());
  EXPECT_THAT(status.place().path, HasSubstr("ckpt"));
  if (fault.error.code() == Code::kIo) {
    EXPECT_THAT(status, HasCode(Code::kIo));
    EXPECT_THAT(status.message(), HasSubstr("injected"));
    return;
  }
  EXPECT_THAT(status, AnyOf(HasCode(Code::kNotFound), HasCode(Code::kIncomplete),
                            HasCode(Code::kUncommitted), HasCode(Code::kCorrupt)));
}

// Whether a blob could not be opened once, and was by another call of the same load, perhaps of
// another thread: the one that failed was for a hint, whose error is none.
bool WasOpenedByAnotherCall(const std::vector<StorageCall>& calls, std::size_t begin) {
  const auto is_opening = [](const StorageCall& call) {
    return call.op == StorageOp::kOpenForRead && call.name.ends_with(internal::format::kBlobSuffix);
  };
  const auto first = calls.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto failed = std::find_if(first, calls.end(), [&](const StorageCall& call) {
    return is_opening(call) && call.code != Code::kOk;
  });
  return failed != calls.end() && std::any_of(first, calls.end(), [&](const StorageCall& call) {
           return is_opening(call) && call.name == failed->name && call.code == Code::kOk;
         });
}

FaultCounts sum;
void Count(const FaultCounts& counts) {
  sum.operations += counts.operations;
  sum.faults += counts.faults;
}

TEST(ReadFaultsTest, OpenAndLoad) {
  const ReadJob job;
  for (const int threads : {1, 3}) {
    Count(ForEachPlace(ReadFaults(), [&](const StorageFault& fault) {
      const std::uint64_t before = job.storage->fault_count();
      const std::size_t calls_before = job.storage->calls().size();
      job.storage->Fail(fault);
      const auto loaded = job.Load(threads);
      job.storage->Heal();
      if (loaded.ok()) {
        EXPECT_EQ(*loaded, "");
      } else {
        ExpectTells(loaded.error(), fault);
      }
      const bool is_met = job.storage->fault_count() > before;
      const bool is_right =
          loaded.ok() ? !is_met || WasOpenedByAnotherCall(job.storage->calls(), calls_before)
                      : is_met;
      EXPECT_TRUE(is_right) << "no fault is passed over, none is invented";
      return is_met;
    }));
  }
  EXPECT_EQ(job.Load().value(), "") << "nothing of the faults is left";
}

TEST(ReadFaultsTest, VerifyAtEachLevel) {
  const ReadJob job;
  for (const VerifyLevel level :
       {VerifyLevel::kFiles, VerifyLevel::kStructure, VerifyLevel::kFull}) {
    Count(ForEachPlace(ReadFaults(), [&](const StorageFault& fault) {
      const std::uint64_t before = job.storage->fault_count();
      job.storage->Fail(fault);
      const VerifyReport report = Verify(kDir, {.level = level, .storage = job.storage}).value();
      job.storage->Heal();
      const bool is_met = job.storage->fault_count() > before;
      // A look whose answer only chooses how to read may fail.
      EXPECT_TRUE(is_met == (report.verdict != Verdict::kCommitted) || fault.op == StorageOp::kStat)
          << VerdictName(report.verdict);
      for (const Status& violation : report.violations) ExpectTells(violation, fault);
      return is_met;
    }));
  }
}

TEST(ReadFaultsTest, CommitOfSummariesReadBack) {
  Count(ForEachPlace(ReadFaults(), [&](const StorageFault& fault) {
    const auto memory = MemoryStorage();
    EXPECT_TRUE(SaveByHand(*SmallEngine(memory), kDir, kState).ok());
    ReplaceFile(*memory, kDir, "COMMIT", nullptr);
    const auto storage = std::make_shared<FailingStorage>(memory);
    storage->Fail(fault);
    const Status status = [&]() -> Status {
      const auto blobs = ListBlobs(*storage, kDir);
      if (!blobs.ok()) return blobs.error();
      std::vector<BlobSummary> summaries;
      for (const BlobId& blob : *blobs) {
        auto summary = ReadSummary(*storage, kDir, blob);
        if (!summary.ok()) return summary.error();
        summaries.push_back(*summary);
      }
      return Commit(*storage, kDir, {}, summaries).status();
    }();
    const Status opened = Checkpoint::Open(kDir, {.storage = memory}).status();
    EXPECT_TRUE(opened.ok() || opened.code() == Code::kUncommitted) << opened.ToString();
    EXPECT_TRUE(!opened.ok() || FindDifference(memory, kDir, kState).empty());
    if (!status.ok()) ExpectTells(status, fault);
    EXPECT_TRUE(OutcomeIsUnknown(status) || status.ok() == opened.ok());
    return storage->fault_count() > 0;
  }));
}

TEST(ReadFaultsTest, ResumeNeverTakesAnOlderOneUnasked) {
  const auto memory = MemoryStorage();
  const auto engine = SmallEngine(memory);
  const ParentRef old = SaveByHand(*engine, "run/old-ckpt", kState).value().as_parent();
  ASSERT_TRUE(SaveByHand(*engine, "run/new-ckpt", kState, {.parent = old}).ok());
  std::vector<StorageFault> faults = ReadFaults();
  // If the storage says that a directory does not exist, or has no marker, there is no reason to
  // doubt it.
  std::erase_if(faults, [](const StorageFault& f) { return f.error.code() == Code::kNotFound; });
  Count(ForEachPlace(faults, [&](const StorageFault& fault) {
    const auto storage = std::make_shared<FailingStorage>(memory);
    storage->Fail(fault);
    const auto point = Series("run", storage).Newest();
    EXPECT_TRUE(!point.ok() || point->entry.path == "run/new-ckpt") << point->entry.path;
    EXPECT_TRUE(point.ok() || !point.error().place().path.empty());
    return storage->fault_count() > 0;
  }));
  RecordRun(
      {.row = "fault-read",
       .title =
           "Storage faults under loads, verifications, resumes, commits of other writers' blobs",
       .command = "ctest --test-dir build/dev -R fault.read",
       .counts = {{"operations", sum.operations}, {"faults injected", sum.faults}},
       .exact = false});  // two threads may open the same file at once
}

// Which bytes of a read are wrong.
enum class Part { kFirst, kMiddle, kLast };

struct Damage {
  int nth = 0;  // of the reads
  Part part = Part::kFirst;
  bool for_ever = false;  // whenever these bytes are read again
};

// Where the damage was done.
struct DamageSeen {
  int reads = 0;
  std::optional<std::uint64_t> at{};
  std::string name{};
};

void DamageReads(FailingStorage& storage, const Damage& damage, DamageSeen& seen) {
  storage.SetReadHook([&](std::string_view name, std::uint64_t offset, MutableByteSpan bytes) {
    ++seen.reads;
    if (seen.reads == damage.nth && !bytes.empty()) {
      const std::uint64_t last = bytes.size() - 1;
      seen.at = offset + (damage.part == Part::kFirst  ? 0
                          : damage.part == Part::kLast ? last
                                                       : last / 2);
      seen.name = name;
    } else if (!damage.for_ever || !seen.at || name != seen.name) {
      return;
    }
    if (*seen.at < offset || *seen.at >= offset + bytes.size()) return;
    bytes[*seen.at - offset] ^= std::byte{4};
  });
}

// Wrong bytes once are an error, and no retry hides them; the next load is right.
TEST(ReadFaultsTest, AFlakyReadIsAnErrorAndNeverAWrongByte) {
  const ReadJob job;
  std::uint64_t runs = 0;
  std::uint64_t harmless = 0;
  for (const bool for_ever : {false, true}) {
    for (const Part part : {Part::kFirst, Part::kMiddle, Part::kLast}) {
      for (int nth = 1; !HasFailure(); ++nth, ++runs) {
        SCOPED_TRACE(std::to_string(nth) + " " + std::to_string(static_cast<int>(part)));
        DamageSeen seen;
        DamageReads(*job.storage, {nth, part, for_ever}, seen);
        const auto loaded = job.Load();
        job.storage->Heal();
        if (seen.reads < nth) break;
        if (loaded.ok()) {
          ++harmless;
          EXPECT_EQ(*loaded, "");
        } else {
          EXPECT_THAT(loaded.error(),
                      AnyOf(HasCode(Code::kCorrupt), HasCode(Code::kNotACheckpoint)));
          EXPECT_THAT(loaded.error().place().path, HasSubstr(seen.name));
        }
        EXPECT_EQ(job.Load().value(), "");
      }
    }
  }
  EXPECT_EQ(harmless, 0u) << "a load reads nothing that it does not check";
  RecordRun({.row = "fault-flaky-read",
             .title = "Loads with one wrong byte in one read, once or always",
             .command = "ctest --test-dir build/dev -R fault.read",
             .counts = {{"damaged loads", runs}}});
}

// A file whose length differs between the look at it and its opening.
TEST(ReadFaultsTest, FilesThatChangeTheirLengthMeanwhile) {
  const ReadJob job;
  for (const std::string& name : FileNames(*job.memory, kDir)) {
    const Bytes whole = ReadWholeFile(*job.memory, kDir, name);
    for (const int change : {-4096, -1, 1, 4096}) {
      SCOPED_TRACE(name + " " + std::to_string(change));
      Bytes other = whole;
      other.resize(change < 0 && whole.size() < 4096
                       ? whole.size() - 1
                       : whole.size() + static_cast<std::size_t>(change));
      job.storage->SetHook([&](StorageOp op, std::string_view opened) {
        if (op == StorageOp::kOpenForRead && opened == name)
          ReplaceFile(*job.memory, kDir, name, &other);
      });
      const Status status = job.Load().status();
      job.storage->Heal();
      EXPECT_THAT(status, AnyOf(HasCode(Code::kCorrupt), HasCode(Code::kIncomplete)));
      EXPECT_THAT(status.place().path, HasSubstr(name));
      ReplaceFile(*job.memory, kDir, name, &whole);
    }
  }
  EXPECT_EQ(job.Load().value(), "");
}

}  // namespace
}  // namespace sealpoint::testing
