// SPDX-License-Identifier: Apache-2.0
//
// What a load adds to the deliveries to devices (tests/unit/transfer/delivery_test.cc): plans,
// options, budgets, files.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <future>
#include <thread>

#include "tests/support/device/host_device.h"
#include "tests/support/device/use_devices.h"
#include "tests/support/storage/descriptor_storage.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::IsEmpty;

// "w", 256 x 64 elements of f32: 16 chunks of 16 rows, cut at row 160 into two blobs.
constexpr std::uint64_t kMatrixHeight = 256;
constexpr std::uint64_t kMatrixWidth = 64;
constexpr std::uint64_t kMatrixBytes = kMatrixHeight * kMatrixWidth * 4;
constexpr std::uint64_t kMatrixChunk = 4096;
const Region kMatrix = Region::Whole({kMatrixHeight, kMatrixWidth});

class DeviceLoadTest : public LoadFixture {
 protected:
  void OpenMatrix(Codec codec = Codec::kNone, OpenOptions options = {}) {
    MiniSpec spec;
    Bytes bytes(kMatrixBytes);
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      const auto value = static_cast<float>(i / 4 * 7 % 16);
      std::memcpy(bytes.data() + i, &value, sizeof(value));
    }
    spec.tensors.push_back(CutTensor(
        "w", DType::kF32, {kMatrixHeight, kMatrixWidth}, bytes,
        {Region::Of({{0, 0}, {160, kMatrixWidth}}), Region::Of({{160, 0}, {96, kMatrixWidth}})},
        {0, 1}));
    spec.tensors.back().codec = codec;
    memory_ = MemoryStorage();
    storage_ = std::make_shared<ReadingStorage>(memory_);
    Open(spec);
    OpenHere(std::move(options));
  }
  void OpenHere(OpenOptions options = {}) {
    Reopen(std::move(options));
    UseDevices(*checkpoint_, devices_);
  }
  // The same files, which devices can read by themselves.
  void OpenFiles(DescriptorOptions options = {},
                 HostDeviceOptions devices = {.reads_files = true}) {
    devices_ = std::make_shared<HostDevice>(devices);
    OpenMatrix();
    storage_ =
        std::make_shared<ReadingStorage>(std::make_shared<DescriptorStorage>(memory_, options));
    OpenHere();
  }

  std::unique_ptr<DeviceMemory> Allocate(std::uint64_t size, int device = 0) {
    auto memory = devices_->Allocate(device, size);
    std::ranges::fill(memory->contents(), std::byte{0xee});
    return memory;
  }
  static Bytes ContentsOf(const DeviceMemory& memory) {
    return {memory.contents().begin(), memory.contents().end()};
  }
  static ReadRequest Whole(const DeviceMemory& memory, int device = 0) {
    ReadRequest request;
    request.Add("w", MutableMemoryView::Cuda(memory.addresses(), device, nullptr));
    return request;
  }
  // So that each is a range of its own.
  static ReadRequest EverySecondChunk(const DeviceMemory& memory) {
    ReadRequest request;
    for (std::uint64_t row = 0; row < kMatrixHeight; row += 32) {
      const auto to = memory.addresses().subspan(row * kMatrixWidth * 4, kMatrixChunk);
      request.Add("w", Box{{row, 0}, {16, kMatrixWidth}}, MutableMemoryView::Cuda(to, 0, nullptr));
    }
    return request;
  }
  // All bytes arrive. Returns those that devices read by themselves.
  std::uint64_t BytesDirect(const ReadOptions& options = {.gpudirect_storage = true}) {
    const auto memory = Allocate(kMatrixBytes);
    const auto report = checkpoint_->Load(Whole(*memory), {}, options);
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(ContentsOf(*memory), All());
    EXPECT_EQ(devices_->files().open_now(), 0u);
    return report.ok() ? report->bytes_by_gpudirect_storage : 1;
  }
  Bytes All() { return ReadDense("w", kMatrix).value(); }

  std::shared_ptr<HostDevice> devices_ = std::make_shared<HostDevice>();
};

// A destination: which elements, and where they go in memory of `size` bytes.
struct Layout {
  Region region;
  std::vector<std::int64_t> strides{};
  std::uint64_t origin = 0;
  std::uint64_t size = 0;
  std::optional<Conversion> convert{};
};

TEST_F(DeviceLoadTest, EveryLayoutArrivesAsOnTheHost) {
  const Region box = Region::Of({{7, 3}, {170, 21}});
  const std::vector<Layout> layouts = {
      {kMatrix, {}, 0, kMatrixBytes},
      {{{{5, 2}, {200, 50}}, {37, 7001}}, {}, 0, (7001 - 37) * 4},
      {box, {25 * 4 + 1, 4}, 0, 170 * 101},
      {box, {-4, -171 * 4}, (20 * 171 + 169) * 4, 171 * 21 * 4},
      {box, {60 * 8, 17}, 0, 170 * 60 * 8, Conversion{DType::kF64}},
      {box, {2, 180 * 2}, 0, 180 * 21 * 2, Conversion{DType::kBf16}}};
  for (const Codec codec : {Codec::kNone, Codec::kByteSplitZstd}) {
    // With the smaller budget each thread has one window, and parts are cut.
    for (const std::uint64_t budget : {256 * kMiB, 64 * kKiB}) {
      OpenMatrix(codec, {.memory_budget_bytes = budget});
      for (const Layout& layout : layouts) {
        Bytes host(layout.size, std::byte{0xee});
        const auto memory = Allocate(layout.size, 1);
        ReadRequest request;
        request.Add("w", layout.region,
                    MutableMemoryView::Host(host, layout.strides, layout.origin));
        request.Add("w", layout.region,
                    MutableMemoryView::Cuda(memory->addresses(), 1, nullptr, layout.strides,
                                            layout.origin));
        for (ReadItem& item : request.items) item.convert = layout.convert;
        const auto report = checkpoint_->Load(request, LoadContract::Partial(), {.threads = 2});
        ASSERT_TRUE(report.ok()) << report.error().ToString();
        EXPECT_EQ(ContentsOf(*memory), host);
      }
    }
  }
}

// A tensor of host memory is read in place beside one that goes to a device.
TEST_F(DeviceLoadTest, HostAndDeviceMemoryInOneRequest) {
  for (const bool isolate : {false, true}) {
    OpenMatrix();
    const auto memory = Allocate(kMatrixBytes / 2);
    Bytes host(kMatrixBytes / 2);
    ReadRequest request;
    request.Add("w", Box{{0, 0}, {kMatrixHeight / 2, kMatrixWidth}}, MutableMemoryView::Host(host));
    request.Add("w", Box{{kMatrixHeight / 2, 0}, {kMatrixHeight / 2, kMatrixWidth}},
                MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
    const auto report = checkpoint_->Load(request, {}, {.threads = 2, .isolate = isolate});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    host.insert(host.end(), memory->contents().begin(), memory->contents().end());
    EXPECT_EQ(host, All());
  }
}

TEST_F(DeviceLoadTest, PlansAndLoadsToTheHostTouchNoDevice) {
  OpenMatrix();
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(&request, kMatrixBytes, 99, nullptr));
  EXPECT_TRUE(checkpoint_->Plan(request).ok());
  All();
  EXPECT_TRUE(ReadDense("w", kMatrix, {.verify_on_device = true, .gpudirect_storage = true}).ok());
  EXPECT_EQ(devices_->counters().queues, 0u);
  EXPECT_EQ(devices_->counters().pins, 0u);
}

// While no copy can run, ranges are read into all windows, and no more than that.
TEST_F(DeviceLoadTest, ReadsAheadOfTheCopiesWithinItsWindows) {
  OpenMatrix();
  std::atomic<int> reads = 0;
  auto counted = std::make_shared<ReadingStorage>(memory_, [&](const ReadCall& call) {
    if (call.size == kMatrixChunk) ++reads;
    return Status();
  });
  const auto checkpoint = Checkpoint::Open("c", {.storage = counted}).value();
  UseDevices(*checkpoint, devices_);
  const auto memory = Allocate(kMatrixBytes);
  const ReadPlan plan =
      checkpoint->Plan(EverySecondChunk(*memory), LoadContract::Partial()).value();
  reads = 0;
  devices_->Pause();
  auto loaded = std::async(std::launch::async, [&] { return checkpoint->Read(plan).status(); });
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (reads < 3 && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
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
      const auto memory = Allocate(kMatrixBytes, i % 2);
      const auto report = checkpoint_->Load(Whole(*memory, i % 2), {}, {.threads = 2});
      return report.ok() && ContentsOf(*memory) == all;
    }));
  }
  for (auto& load : loads) EXPECT_TRUE(load.get());
}

TEST_F(DeviceLoadTest, AFileThatIsGoneOrCannotBeReadFailsTheLoad) {
  for (const bool is_gone : {false, true}) {
    OpenFiles();
    const auto memory = Allocate(kMatrixBytes);
    const ReadPlan plan = checkpoint_->Plan(Whole(*memory)).value();
    const std::string name = container_.blobs.at(1).name;
    auto failing = std::make_shared<ReadingStorage>(memory_, [&](const ReadCall& call) {
      return call.name == name ? Status(Code::kIo, "injected") : Status();
    });
    const auto other = Checkpoint::Open("c", {.storage = is_gone ? storage_ : failing}).value();
    UseDevices(*other, devices_);
    if (is_gone) ReplaceFile(*memory_, "c", name, nullptr);
    // Devices that would read it leave the error to the host.
    for (const bool is_direct : {false, true}) {
      const Status error = other->Read(plan, {.gpudirect_storage = is_direct}).status();
      EXPECT_EQ(error.code(), is_gone ? Code::kIncomplete : Code::kIo) << error.ToString();
      EXPECT_EQ(error.place().path, BlobPath(1));
      EXPECT_EQ(error.place().tensor, "w");
    }
  }
}

TEST_F(DeviceLoadTest, WhatIsNotAWholeChunkIsNeitherVerifiedThereNorReadDirectly) {
  OpenFiles();
  const std::vector<std::pair<Layout, std::uint64_t>> layouts = {
      {{.region = kMatrix}, kMatrixBytes},
      {{.region = Region::Of({{1, 0}, {255, kMatrixWidth}})}, kMatrixBytes - kMatrixChunk},
      {{.region = Region::Of({{0, 1}, {kMatrixHeight, 63}})}, 0},
      {{.region = kMatrix, .strides = {400, 4}}, 0},
      {{.region = kMatrix, .strides = {4, 1024}}, 0},
      {{.region = kMatrix, .convert = Conversion{DType::kF64}}, 0}};
  for (const auto& [layout, whole_bytes] : layouts) {
    const std::uint64_t element = layout.convert ? 8 : 4;
    const auto memory = Allocate(layout.strides.empty() ? layout.region.element_count() * element
                                                        : 4 * kMatrixBytes);
    ReadRequest request;
    request.Add("w", layout.region,
                MutableMemoryView::Cuda(memory->addresses(), 0, nullptr, layout.strides));
    request.items.back().convert = layout.convert;
    const auto verified = checkpoint_->Load(request, {}, {.verify_on_device = true});
    ASSERT_TRUE(verified.ok()) << verified.error().ToString();
    EXPECT_EQ(verified->bytes_verified_on_device, whole_bytes);
    const auto direct = checkpoint_->Load(request, {}, {.gpudirect_storage = true});
    ASSERT_TRUE(direct.ok()) << direct.error().ToString();
    // The other chunks of the first blob's range go through the host, too.
    const bool is_all = whole_bytes == kMatrixBytes || whole_bytes == 0;
    EXPECT_EQ(direct->bytes_by_gpudirect_storage, is_all ? whole_bytes : 6 * kMatrixChunk);
  }
}

TEST_F(DeviceLoadTest, NorIsOneElementThatIsConverted) {
  MiniSpec spec;
  Bytes bytes(4);
  const float value = 3;
  std::memcpy(bytes.data(), &value, 4);
  spec.tensors.push_back(CutTensor("s", DType::kF32, {}, bytes, {Region::Whole({})}));
  Open(spec);
  OpenHere();
  const auto memory = Allocate(4);
  ReadRequest request;
  request.Add("s", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
  request.items.back().convert = Conversion{DType::kInt32};
  const auto report = checkpoint_->Load(request, {}, {.verify_on_device = true});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->bytes_verified_on_device, 0u);
  EXPECT_EQ(memory->contents()[0], std::byte{3});
}

TEST_F(DeviceLoadTest, ADeviceWithoutDigestsVerifiesNothingAndReadsNothing) {
  OpenFiles({}, {.has_kernels = false, .reads_files = true});
  const auto memory = Allocate(kMatrixBytes);
  const ReadPlan plan = checkpoint_->Plan(Whole(*memory)).value();
  storage_->ClearLog();
  const Status error = checkpoint_->Read(plan, {.verify_on_device = true}).status();
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_EQ(error.place().tensor, "w");
  EXPECT_THAT(storage_->log().reads, IsEmpty());
  EXPECT_EQ(BytesDirect(), 0u);
}

// Chunks of many lengths and tensors in one window: each digest meets its chunk, whether they lie
// apart or back to back.
TEST_F(DeviceLoadTest, VerifiesManySmallTensorsInAnyOrderOfMemory) {
  MiniSpec spec;
  constexpr std::uint64_t kCount = 40;
  std::vector<Bytes> contents;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    // Three alike at a time; whole multiples of 64, so that one range holds them all.
    const std::uint64_t size = 64 * (1 + i / 3 * 7 % 5);
    contents.push_back(NoiseBytes(i, size));
    spec.tensors.push_back(CutTensor("t" + std::to_string(100 + i), DType::kUInt8, {size},
                                     contents.back(), {Region::Whole({size})}));
  }
  Open(spec);
  OpenHere();
  const auto memory = Allocate(kCount * 320);
  for (const bool back_to_back : {false, true}) {
    ReadRequest request;
    std::uint64_t total = 0;
    for (std::uint64_t i = 0; i < kCount; ++i) {
      const std::uint64_t offset = back_to_back ? total : (i * 7 % kCount) * 320;
      const auto to = memory->addresses().subspan(offset, contents[i].size());
      request.Add("t" + std::to_string(100 + i), MutableMemoryView::Cuda(to, 0, nullptr));
      total += contents[i].size();
    }
    const auto report = checkpoint_->Load(request, {}, {.verify_on_device = true});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->bytes_verified_on_device, total);
  }
}

TEST_F(DeviceLoadTest, DevicesReadFilesIfAskedAndOffered) {
  OpenFiles();
  EXPECT_EQ(BytesDirect({}), 0u);
  // Isolated destinations get verified bytes only.
  EXPECT_EQ(BytesDirect({.isolate = true, .gpudirect_storage = true}), 0u);
  EXPECT_EQ(devices_->files().opened(), 0u);
  EXPECT_EQ(BytesDirect(), kMatrixBytes);
  devices_->files().Refuse();
  EXPECT_EQ(BytesDirect(), 0u);
  for (const DescriptorOptions options :
       {DescriptorOptions{.is_direct = false}, {.has_descriptors = false}}) {
    OpenFiles(options);
    EXPECT_EQ(BytesDirect(), 0u);
    EXPECT_EQ(devices_->files().opened(), 0u);
  }
  OpenFiles({}, {});  // devices that read no files cost no second descriptor
  EXPECT_EQ(BytesDirect({}), 0u);
  const std::uint64_t open_max = storage_->log().open_file_count_max;
  EXPECT_EQ(BytesDirect(), 0u);
  EXPECT_EQ(storage_->log().open_file_count_max, open_max);
}

TEST_F(DeviceLoadTest, WhatTwoItemsRequestGoesThroughTheHost) {
  OpenFiles();
  const auto memory = Allocate(kMatrixBytes + kMatrixChunk);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(memory->addresses().first(kMatrixBytes), 0, nullptr));
  request.Add("w", Box{{0, 0}, {16, kMatrixWidth}},
              MutableMemoryView::Cuda(memory->addresses().subspan(kMatrixBytes), 0, nullptr));
  const auto report = checkpoint_->Load(request, {}, {.gpudirect_storage = true});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->bytes_by_gpudirect_storage, 6 * kMatrixChunk);
  Bytes expected = All();
  expected.insert(expected.end(), expected.begin(), expected.begin() + kMatrixChunk);
  EXPECT_EQ(ContentsOf(*memory), expected);
}

// The latest files stay open, are shared by the threads, and no descriptor is closed before what
// was made of it.
TEST_F(DeviceLoadTest, ReadsMoreFilesThanStayOpen) {
  constexpr int kBlobs = 40;
  MiniSpec spec;
  std::vector<Region> regions;
  std::vector<int> blobs;
  for (int i = 0; i < kBlobs; ++i) {
    regions.push_back(Region::Of({{static_cast<std::uint64_t>(i), 0}, {1, 64}}));
    blobs.push_back(i);
  }
  spec.tensors.push_back(
      CutTensor("w", DType::kUInt8, {kBlobs, 64}, NoiseBytes(3, kBlobs * 64), regions, blobs));
  devices_ = std::make_shared<HostDevice>(HostDeviceOptions{.reads_files = true});
  Open(spec);
  storage_ = std::make_shared<ReadingStorage>(std::make_shared<DescriptorStorage>(memory_));
  OpenHere();
  const auto memory = Allocate(kBlobs * 64);
  const auto report =
      checkpoint_->Load(Whole(*memory), {}, {.threads = 3, .gpudirect_storage = true});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->bytes_by_gpudirect_storage, kBlobs * 64u);
  EXPECT_EQ(devices_->files().opened(), static_cast<std::uint64_t>(kBlobs));
  EXPECT_LE(devices_->files().open_max(), 32u + 3u);
  EXPECT_EQ(ContentsOf(*memory), NoiseBytes(3, kBlobs * 64));
}

}  // namespace
}  // namespace sealpoint::testing
