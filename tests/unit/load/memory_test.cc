// SPDX-License-Identifier: Apache-2.0
//
// What a load takes in memory, and reads, of a checkpoint that is many times larger than its
// budget.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/collective_reader.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/device/host_device.h"
#include "tests/support/device/use_devices.h"
#include "tests/support/process/allocation_watch.h"
#include "tests/support/process/results.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/storage/reading_storage.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kChunkBytes = kMiB;
constexpr std::uint64_t kBudgetBytes = 4 * kMiB;
// Threads, decoders and lists, whatever is read.
constexpr std::uint64_t kSlackBytes = kMiB;
constexpr std::uint64_t kColumns = kMiB / 4;

constexpr std::uint64_t kRows = 32;

// "w" of f32 with rows of 1 MiB, in two blobs; half of each chunk compresses.
std::shared_ptr<Storage> Store(Codec codec) {
  const Bytes noise = NoiseBytes(1, kMiB / 2);
  Bytes bytes(kRows * kMiB);
  for (std::uint64_t row = 0; row < kRows; ++row) {
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(row * kMiB);
    // No two chunks are equal.
    std::rotate_copy(noise.begin(), noise.begin() + static_cast<std::ptrdiff_t>(row), noise.end(),
                     at);
  }
  MiniSpec spec;
  spec.tensors.push_back(CutTensor(
      "w", DType::kF32, {kRows, kColumns}, bytes,
      {Region::Of({{0, 0}, {12, kColumns}}), Region::Of({{12, 0}, {kRows - 12, kColumns}})},
      {0, 1}));
  spec.tensors.back().chunk_size = kChunkBytes;
  spec.tensors.back().codec = codec;
  auto storage = MemoryStorage();
  StoreFiles(*storage, "c", BuildMini(spec).files);
  return storage;
}
const std::shared_ptr<Storage>& PlainFiles() {
  static const std::shared_ptr<Storage> files = Store(Codec::kNone);
  return files;
}

const std::shared_ptr<Storage>& CodedFiles() {
  static const std::shared_ptr<Storage> files = Store(Codec::kByteSplitZstd);
  return files;
}

// The memory that reading takes at most, beside the destination and the plan.
std::uint64_t PeakOf(const std::shared_ptr<Storage>& files,
                     const std::optional<Conversion>& convert, const ReadOptions& options) {
  const auto storage = std::make_shared<ReadingStorage>(files);
  const auto checkpoint =
      Checkpoint::Open("c", {.storage = storage, .memory_budget_bytes = kBudgetBytes}).value();
  // What is converted is converted to elements of half the size.
  Bytes out((convert ? kRows / 2 : kRows) * kMiB);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Host(out));
  request.items.back().convert = convert;
  const ReadPlan plan = checkpoint->Plan(request).value();
  storage->ClearLog();
  BeginAllocationWatch();
  const auto report = checkpoint->Read(plan, options);
  const AllocationPeak peak = EndAllocationWatch();
  EXPECT_TRUE(report.ok()) << report.error().ToString();
  std::uint64_t bytes_read = 0;
  for (const ReadCall& call : storage->log().reads) bytes_read += call.size;
  EXPECT_EQ(bytes_read, plan.Summary().bytes_read);
  return peak.live_bytes;
}

// The same where the destination is memory of a device, whose link is slower than reading.
std::uint64_t PeakOfDevice(const std::shared_ptr<Storage>& files,
                           const std::optional<Conversion>& convert, const ReadOptions& options) {
  const auto devices = std::make_shared<HostDevice>(
      HostDeviceOptions{.delay_max = std::chrono::microseconds(100), .link_bytes_per_second = 2e9});
  const auto memory = devices->Allocate(0, (convert ? kRows / 2 : kRows) * kMiB);
  const auto checkpoint =
      Checkpoint::Open("c", {.storage = files, .memory_budget_bytes = kBudgetBytes}).value();
  UseDevices(*checkpoint, devices);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
  request.items.back().convert = convert;
  const ReadPlan plan = checkpoint->Plan(request).value();
  BeginAllocationWatch();
  const auto report = checkpoint->Read(plan, options);
  const AllocationPeak peak = EndAllocationWatch();
  EXPECT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_LE(devices->counters().pinned_bytes, kBudgetBytes);
  return peak.live_bytes;
}

class LoadMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanWatchAllocations()) GTEST_SKIP() << "the sanitizer brings an allocator of its own";
  }
};

TEST_F(LoadMemoryTest, PlainChunksStayWithinTheBudget) {
  const auto& files = PlainFiles();
  std::uint64_t peak = 0;
  for (const int threads : {1, 32}) {
    for (const bool isolate : {false, true}) {
      peak = std::max(peak, PeakOf(files, {}, {.threads = threads, .isolate = isolate}));
    }
  }
  EXPECT_LE(peak, kBudgetBytes + kSlackBytes);
  RecordRun({.row = "load-memory",
             .title = "Memory of loads of 32 MiB within a budget of 4 MiB",
             .command = "ctest --test-dir build/dev -R unit.load_memory",
             .counts = {{"peak KiB", peak / kKiB}},
             .exact = false});
}

TEST_F(LoadMemoryTest, DecodedChunksStayWithinTheBudget) {
  const auto& files = CodedFiles();
  for (const int threads : {1, 32}) {
    EXPECT_LE(PeakOf(files, {}, {.threads = threads}), kBudgetBytes + kSlackBytes);
  }
}

TEST_F(LoadMemoryTest, ConvertedChunksStayWithinTheBudget) {
  const auto& files = PlainFiles();
  const Conversion conversion{DType::kBf16, Rounding::kNearestEven};
  for (const int threads : {1, 32}) {
    EXPECT_LE(PeakOf(files, conversion, {.threads = threads}), kBudgetBytes + kSlackBytes);
  }
}

TEST_F(LoadMemoryTest, LoadsToADeviceStayWithinTheBudget) {
  std::uint64_t peak = 0;
  for (const int threads : {1, 32}) {
    for (const bool verify : {false, true}) {
      const ReadOptions options{.threads = threads, .verify_on_device = verify};
      peak = std::max(peak, PeakOfDevice(PlainFiles(), {}, options));
      peak = std::max(peak, PeakOfDevice(CodedFiles(), {}, options));
    }
    const Conversion conversion{DType::kBf16, Rounding::kNearestEven};
    peak = std::max(peak, PeakOfDevice(PlainFiles(), conversion, {.threads = threads}));
  }
  // A mapping is aligned to huge pages by mapping more, which is given back untouched.
  constexpr std::uint64_t kHugePageBytes = 2 * kMiB;
  EXPECT_LE(peak, kBudgetBytes + kSlackBytes + kHugePageBytes);
  RecordRun({.row = "load-memory-device",
             .title = "Host memory of loads of 32 MiB to a device within a budget of 4 MiB",
             .command = "ctest --test-dir build/dev -R unit.load_memory",
             .counts = {{"peak KiB", peak / kKiB}},
             .exact = false});
}

TEST_F(LoadMemoryTest, ACollectiveLoadStaysWithinTheBudgetsOfItsRanks) {
  constexpr int kRanks = 3;
  constexpr std::uint64_t kLoadBudgetBytes = 6 * kMiB;
  const auto& files = PlainFiles();
  std::vector<Bytes> memory(kRanks, Bytes(kRows * kMiB));
  BeginAllocationWatch();
  WithRanks(kRanks, [&](Communicator& comm) {
    const auto reader =
        CollectiveReader::Open(comm, "c", {.storage = files, .memory_budget_bytes = kBudgetBytes})
            .value();
    ReadRequest request;
    request.Add("w", MutableMemoryView::Host(memory[static_cast<std::size_t>(comm.rank())]));
    const auto report =
        reader->Load(request, {}, {.memory_budget_bytes = kLoadBudgetBytes, .threads = 2});
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->all_bytes_read, kRows * kMiB);
  });
  const AllocationPeak peak = EndAllocationWatch();
  EXPECT_LE(peak.live_bytes, kRanks * (kBudgetBytes + kLoadBudgetBytes + kSlackBytes));
  EXPECT_EQ(memory[0], memory[kRanks - 1]);
}

}  // namespace
}  // namespace sealpoint::testing
