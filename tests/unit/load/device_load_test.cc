// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <future>

#include "sealpoint/placement.h"
#include "tests/unit/load/device_load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

// A destination: which elements, and where they go in memory of `size` bytes.
struct Layout {
  std::string name;
  Region region;
  std::vector<std::int64_t> strides{};
  std::uint64_t origin = 0;
  std::uint64_t size = 0;
};

class DeviceLoadTest : public DeviceLoadFixture {
 protected:
  // Layouts of elements of this size.
  static std::vector<Layout> Layouts(std::int64_t element) {
    const Region all = Region::Whole({kRows, kColumns});
    const Region box = Region::Of({{7, 3}, {170, 21}});
    const auto bytes = [element](std::uint64_t count) {
      return count * static_cast<std::uint64_t>(element);
    };
    return {
        {"dense tensor", all, {}, 0, bytes(kRows * kColumns)},
        {"dense box", box, {}, 0, bytes(170 * 21)},
        {"run", {{{5, 2}, {200, 50}}, {37, 7001}}, {}, 0, bytes(7001 - 37)},
        {"one element", Region::Of({{200, 60}, {1, 1}}), {}, 0, bytes(1)},
        {"rows apart", all, {70 * element, element}, 0, bytes(kRows * 70)},
        {"rows of a box apart", box, {25 * element + 1, element}, 0, 170 * (bytes(25) + 1)},
        {"elements apart", box, {60 * element, 2 * element + 1}, 0, bytes(170 * 60)},
        {"transposed", box, {element, 170 * element}, 0, bytes(170 * 21)},
        {"transposed apart", box, {element, 180 * element}, 0, bytes(180 * 21)},
        {"rows backwards", box, {-21 * element, element}, bytes(169 * 21), bytes(170 * 21)},
        {"columns backwards", all, {64 * element, -element}, bytes(63), bytes(kRows * kColumns)},
        {"all backwards, transposed",
         box,
         {-element, -171 * element},
         bytes(20 * 171 + 169),
         bytes(171 * 21)},
    };
  }
  // The same bytes as on the host, and the same left alone.
  void ExpectAsOnHost(const Layout& layout, std::optional<Conversion> convert,
                      const ReadOptions& options) {
    Bytes host(layout.size, std::byte{0xee});
    const auto memory = Allocate(layout.size, 1);
    ReadRequest request;
    request.Add("w", layout.region, MutableMemoryView::Host(host, layout.strides, layout.origin));
    request.Add(
        "w", layout.region,
        MutableMemoryView::Cuda(memory->addresses(), 1, nullptr, layout.strides, layout.origin));
    for (ReadItem& item : request.items) item.convert = convert;
    const auto report = checkpoint_->Load(request, LoadContract::Partial(), options);
    ASSERT_TRUE(report.ok()) << layout.name << ": " << report.error().ToString();
    EXPECT_EQ(ContentsOf(*memory), host) << layout.name;
  }
};

TEST_F(DeviceLoadTest, EveryLayoutArrivesAsOnTheHost) {
  for (const Codec codec : {Codec::kNone, Codec::kByteSplitZstd}) {
    // With the smaller budget each thread has one slot, and parts are cut.
    for (const std::uint64_t budget : {256 * kMiB, 64 * kKiB}) {
      OpenMatrix(codec, {.memory_budget_bytes = budget});
      for (const Layout& layout : Layouts(4)) ExpectAsOnHost(layout, {}, {.threads = 2});
    }
  }
}

TEST_F(DeviceLoadTest, EveryLayoutIsConvertedAsOnTheHost) {
  for (const std::uint64_t budget : {256 * kMiB, 64 * kKiB}) {
    OpenMatrix(Codec::kNone, {.memory_budget_bytes = budget});
    for (const Layout& layout : Layouts(2)) ExpectAsOnHost(layout, Conversion{DType::kBf16}, {});
    for (const Layout& layout : Layouts(8)) ExpectAsOnHost(layout, Conversion{DType::kF64}, {});
  }
}

// The second of two ranks, whose half of the columns is dense there.
TEST_F(DeviceLoadTest, ThePartsOfALayout) {
  OpenMatrix();
  const Mesh mesh = Mesh::Parse("tensor=2").value();
  const LocalLayout layout =
      PlaceTensor(mesh, 1, {kRows, kColumns}, {Shard{.dim = 1, .axis = "tensor"}}).value();
  const std::uint64_t size = kRows * kColumns / 2 * 4;
  const auto memory = Allocate(size, 1);
  ReadRequest request;
  request.Add("w", layout, MutableMemoryView::Cuda(memory->addresses(), 1, nullptr));
  ASSERT_TRUE(checkpoint_->Load(request, LoadContract::Partial()).ok());
  EXPECT_EQ(ContentsOf(*memory),
            ReadDense("w", Region::Of({{0, kColumns / 2}, {kRows, kColumns / 2}})).value());
}

// 64 times as many bytes as the windows hold; a window or a piece that is filled before its copies
// are done gives other bytes.
TEST_F(DeviceLoadTest, StagingMemoryIsUsedAgainOnlyWhenItsCopiesAreDone) {
  devices_ = std::make_shared<HostDevice>(
      HostDeviceOptions{.delay_max = std::chrono::microseconds(2000), .piece_bytes_max = 512});
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    OpenMatrix(codec, {.memory_budget_bytes = 64 * kKiB});
    const auto memory = Allocate(kTensorBytes);
    const ReadRequest request = EverySecondChunk(*memory);
    ASSERT_TRUE(checkpoint_->Load(request, LoadContract::Partial()).ok());
    const Bytes all = All();
    for (std::uint64_t row = 0; row < kRows; row += 32) {
      const auto at = static_cast<std::ptrdiff_t>(row * kColumns * 4);
      EXPECT_TRUE(std::equal(all.begin() + at, all.begin() + at + 16 * kColumns * 4,
                             memory->contents().begin() + at))
          << row;
    }
  }
}

// What the caller queued before the call must not win, whichever stream it is on.
TEST_F(DeviceLoadTest, WorkOfTheCallersStreamsComesBeforeTheBytes) {
  OpenMatrix();
  const Bytes all = All();
  const auto write_late = [](HostStream& stream, const DeviceMemory& memory, int count) {
    for (int i = 0; i < count; ++i) {
      stream.Run([contents = memory.contents()] {
        std::this_thread::sleep_for(std::chrono::microseconds(500));
        std::fill(contents.begin(), contents.end(), std::byte{0x55});
      });
    }
  };
  for (const int threads : {1, 3}) {  // each has a queue of its own
    const auto a = devices_->MakeStream();
    const auto b = devices_->MakeStream();
    const auto first = Allocate(kTensorBytes);
    const auto second = Allocate(kTensorBytes);
    const auto third = Allocate(kTensorBytes, 1);
    write_late(*a, *first, 5);
    write_late(*b, *second, 40);  // longer than what the first is waited for
    write_late(devices_->default_stream(1), *third, 20);
    ReadRequest request;
    request.Add("w", MutableMemoryView::Cuda(first->addresses(), 0, a.get()));
    request.Add("w", MutableMemoryView::Cuda(second->addresses(), 0, b.get()));
    request.Add("w", MutableMemoryView::Cuda(third->addresses(), 1, nullptr));
    ASSERT_TRUE(checkpoint_->Load(request, {}, {.threads = threads}).ok());
    for (const DeviceMemory* memory : {first.get(), second.get(), third.get()}) {
      EXPECT_EQ(ContentsOf(*memory), all);
      ExpectStill(*memory);
    }
  }
}

TEST_F(DeviceLoadTest, AllHasArrivedWhenTheCallReturns) {
  devices_ =
      std::make_shared<HostDevice>(HostDeviceOptions{.delay_max = std::chrono::microseconds(5000)});
  OpenMatrix();
  const auto memory = Allocate(kTensorBytes);
  ASSERT_TRUE(LoadAll(*memory).ok());
  EXPECT_EQ(ContentsOf(*memory), All());
}

// A tensor of host memory is read in place beside one that goes to a device.
TEST_F(DeviceLoadTest, HostAndDeviceMemoryInOneRequest) {
  for (const bool isolate : {false, true}) {
    OpenMatrix();
    const auto memory = Allocate(kTensorBytes / 2);
    Bytes host(kTensorBytes / 2);
    ReadRequest request;
    request.Add("w", Box{{0, 0}, {kRows / 2, kColumns}}, MutableMemoryView::Host(host));
    request.Add("w", Box{{kRows / 2, 0}, {kRows / 2, kColumns}},
                MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
    const auto report = checkpoint_->Load(request, {}, {.threads = 2, .isolate = isolate});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    host.insert(host.end(), memory->contents().begin(), memory->contents().end());
    EXPECT_EQ(host, All());
  }
}

TEST_F(DeviceLoadTest, CopiesComeFromPinnedMemory) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    OpenMatrix(codec);
    const auto memory = Allocate(kTensorBytes);
    ASSERT_TRUE(LoadAll(*memory, {.threads = 2}).ok());
    EXPECT_EQ(devices_->counters().bytes_pageable, 0u);
    EXPECT_GT(devices_->counters().pinned_bytes, 0u);
  }
}

TEST_F(DeviceLoadTest, MemoryThatCannotBePinnedDoesToo) {
  OpenMatrix();
  devices_->RefusePins();
  const auto memory = Allocate(kTensorBytes);
  ASSERT_TRUE(LoadAll(*memory).ok());
  EXPECT_EQ(ContentsOf(*memory), All());
  EXPECT_EQ(devices_->counters().bytes_pageable, kTensorBytes);
}

// One queued copy for the rows of a plane, whatever the order of the dimensions.
TEST_F(DeviceLoadTest, RowsAreCopiedTogether) {
  const Region all = Region::Whole({kRows, kColumns});
  for (const std::vector<std::int64_t>& strides :
       {std::vector<std::int64_t>{70 * 4, 4}, {-70 * 4, 4}, {4, 300 * 4}, {4, -300 * 4}}) {
    OpenMatrix();
    const auto memory = Allocate(300 * 70 * 4);
    const std::uint64_t origin = strides[0] < 0 ? 255 * 70 * 4 : strides[1] < 0 ? 63 * 300 * 4 : 0;
    const std::uint64_t copies_before = devices_->counters().copies;
    ReadRequest request;
    request.Add("w", all,
                MutableMemoryView::Cuda(memory->addresses(), 0, nullptr, strides, origin));
    ASSERT_TRUE(checkpoint_->Load(request).ok());
    EXPECT_EQ(devices_->counters().copies - copies_before, kTensorBytes / kChunk);
  }
}

TEST_F(DeviceLoadTest, LoadsToTheHostTouchNoDevice) {
  OpenMatrix();
  All();
  EXPECT_EQ(devices_->counters().queues, 0u);
  EXPECT_EQ(devices_->counters().pins, 0u);
}

TEST_F(DeviceLoadTest, APlanTouchesNoDevice) {
  OpenMatrix();
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(&request, kTensorBytes, 99, nullptr));
  EXPECT_TRUE(checkpoint_->Plan(request).ok());
  EXPECT_EQ(devices_->counters().queues, 0u);
}

// While no copy can run, ranges are read into all windows, and no more than that.
TEST_F(DeviceLoadTest, ReadsAheadOfTheCopiesWithinItsWindows) {
  OpenMatrix();
  std::atomic<int> reads = 0;
  auto counted = std::make_shared<ReadingStorage>(memory_, [&](const ReadCall& call) {
    if (call.size == kChunk) ++reads;
    return Status();
  });
  const auto checkpoint = Checkpoint::Open("c", {.storage = counted}).value();
  UseDevices(*checkpoint, devices_);
  const auto memory = Allocate(kTensorBytes);
  const ReadPlan plan =
      checkpoint->Plan(EverySecondChunk(*memory), LoadContract::Partial()).value();
  ASSERT_EQ(plan.Summary().requests, 8u);
  reads = 0;
  devices_->Pause();
  auto loaded = std::async(std::launch::async, [&] { return checkpoint->Read(plan).status(); });
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (reads < 3 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(reads, 3);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(reads, 3);
  devices_->Resume();
  EXPECT_TRUE(loaded.get().ok());
  EXPECT_EQ(reads, 8);
}

TEST_F(DeviceLoadTest, ManyThreadsMayLoadAtOnce) {
  OpenMatrix(Codec::kNone, {.memory_budget_bytes = 128 * kKiB});
  const Bytes all = All();
  std::vector<std::future<bool>> loads;
  for (int i = 0; i < 4; ++i) {
    loads.push_back(std::async(std::launch::async, [&, i] {
      const auto memory = Allocate(kTensorBytes, i % 2);
      const auto report = LoadAll(*memory, {.threads = 2}, nullptr, i % 2);
      return report.ok() && ContentsOf(*memory) == all;
    }));
  }
  for (auto& load : loads) EXPECT_TRUE(load.get());
}

}  // namespace
}  // namespace sealpoint::testing
