// SPDX-License-Identifier: Apache-2.0
//
// The memory that reading hostile files takes: at most the bytes of the files, 64 MiB, and what the
// caller asked for (spec/limits.md, "Memory").
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/verify.h"
#include "tests/damage/bombs.h"
#include "tests/support/damage/check.h"
#include "tests/support/process/allocation_watch.h"
#include "tests/support/process/results.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kBoundBytes = 64 * kMiB;

std::uint64_t TotalBytes(const DamagedFiles& files) {
  std::uint64_t total = 0;
  for (const auto& [name, entry] : files) total += entry.bytes.size();
  return total;
}

// The memory that the caller of a load provides. No test requests more.
constexpr std::uint64_t kLoadMaxBytes = 256 * kMiB;

class Costs {
 public:
  explicit Costs(std::string name, const DamagedFiles& files)
      : name_(std::move(name)),
        file_bytes_(TotalBytes(files)),
        storage_(std::make_shared<DamageStorage>(files)) {}

  // The greatest peak above the length of the files.
  std::uint64_t MeasureAll() {
    Measure("open", [&] { return Checkpoint::Open(DamageStorage::kPath, Options()).status(); });
    for (const VerifyLevel level :
         {VerifyLevel::kFiles, VerifyLevel::kStructure, VerifyLevel::kFull}) {
      Measure("verify", [&] {
        return Verify(DamageStorage::kPath, {.level = level, .storage = storage_}).status();
      });
    }
    MeasureSummaries();
    auto checkpoint = Checkpoint::Open(DamageStorage::kPath, Options());
    if (!checkpoint.ok()) return worst_;
    for (const TensorInfo& tensor : (*checkpoint)->tensors()) MeasureTensor(**checkpoint, tensor);
    for (const ObjectInfo& object : (*checkpoint)->objects()) {
      // Grows as it is verified, so that old and new memory are there for a moment.
      Measure(
          "object " + object.name, [&] { return (*checkpoint)->ReadObject(object.name).status(); },
          IsWhollyThere(object) ? 2 * object.size_bytes : 0);
    }
    return worst_;
  }

 private:
  OpenOptions Options() const { return {.storage = storage_, .check_files = false}; }

  void Measure(const std::string& what, const std::function<Status()>& use,
               std::uint64_t asked_for = 0) {
    BeginAllocationWatch();
    Status status = use();
    const AllocationPeak peak = EndAllocationWatch();
    const std::uint64_t free_bytes = file_bytes_ + asked_for;
    const std::uint64_t above = peak.live_bytes - std::min(peak.live_bytes, free_bytes);
    worst_ = std::max(worst_, above);
    EXPECT_LE(above, kBoundBytes) << name_ << ", " << what << ": " << peak.live_bytes
                                  << " bytes, the largest of " << peak.largest_bytes
                                  << ", for files of " << file_bytes_ << "; " << status.ToString();
  }

  void MeasureSummaries() {
    for (const auto& [name, entry] : storage_->files()) {
      const Result<BlobId> id =
          BlobId::FromHex(name.substr(0, std::min<std::size_t>(32, name.size())));
      if (!id.ok() || !name.ends_with(".blob")) continue;
      Measure(
          "summary", [&] { return ReadSummary(*storage_, DamageStorage::kPath, *id).status(); },
          2 * entry.bytes.size());
    }
  }

  void MeasureTensor(const Checkpoint& checkpoint, const TensorInfo& tensor) {
    if (tensor.raw_bytes > kLoadMaxBytes) return;
    Bytes bytes(tensor.raw_bytes);
    ReadRequest request;
    request.Add(tensor.name, MutableMemoryView::Host(bytes));
    const std::uint64_t chunks = tensor.raw_bytes / tensor.chunk_size_bytes + tensor.shard_count;
    Measure(
        "tensor " + tensor.name,
        [&] { return checkpoint.Load(request, LoadContract::Partial()).status(); }, chunks * kKiB);
  }

  // No more than this can be decoded from what is there: 4 bytes of a frame stand for 128 KiB at
  // the most.
  bool IsWhollyThere(const ObjectInfo& object) const {
    return object.size_bytes / (32 * kKiB) <= file_bytes_;
  }

  const std::string name_;
  const std::uint64_t file_bytes_;
  const std::shared_ptr<DamageStorage> storage_;
  std::uint64_t worst_ = 0;
};

class Allocation : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanWatchAllocations()) GTEST_SKIP() << "the sanitizer has its own allocator";
  }
};

TEST_F(Allocation, IsCounted) {
  BeginAllocationWatch();
  auto memory = std::make_unique<Bytes>(10 * kMiB);
  memory.reset();
  memory = std::make_unique<Bytes>(5 * kMiB);
  const AllocationPeak peak = EndAllocationWatch();
  EXPECT_GE(peak.live_bytes, 10 * kMiB);
  EXPECT_LT(peak.live_bytes, 11 * kMiB);
  EXPECT_GE(peak.largest_bytes, 10 * kMiB);
}

TEST_F(Allocation, StaysWithinTheBoundOverTheCorpusAndAllBombs) {
  std::uint64_t cases = 0;
  std::uint64_t worst = 0;
  const Corpus corpus = BuildCorpus();
  for (const CorpusEntry& entry : corpus.entries()) {
    DamagedFiles files = AsDamagedFiles(entry.container.files);
    for (const auto& [name, target] : entry.links) {
      files[name] = {.kind = EntryKind::kSymlink, .target = target};
    }
    for (const std::string& name : entry.directories) files[name] = {.kind = EntryKind::kDirectory};
    worst = std::max(worst, Costs(entry.name, files).MeasureAll());
    ++cases;
  }
  for (const auto& [name, make] : Bombs()) {
    const std::uint64_t above = Costs(name, make()).MeasureAll();
    std::cout << "[          ] " << name << ": " << above / kKiB << " KiB above its files\n";
    worst = std::max(worst, above);
    ++cases;
  }
  RecordRun({.row = "allocation",
             .title = "Memory beyond the length of hostile files",
             .command = "ctest --test-dir build/dev -R damage.allocation",
             .counts = {{"cases", cases}, {"peak KiB", worst / kKiB}},
             .exact = false});
}

}  // namespace
}  // namespace sealpoint::testing
