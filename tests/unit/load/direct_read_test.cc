// SPDX-License-Identifier: Apache-2.0
// Devices that read files by themselves (ReadOptions::gpudirect_storage).
#include "lib/transfer/direct_delivery.h"

#include <cerrno>

#include "lib/base/errors.h"
#include "tests/support/storage/descriptor_storage.h"
#include "tests/unit/load/device_load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ReadOptions kDirect{.gpudirect_storage = true};

// Where the chunks of 100 bytes of one range go: device and offset in one address space.
std::vector<std::uint64_t> RunSizes(const std::vector<std::pair<int, std::uint64_t>>& places) {
  internal::ReadPlanData plan;
  std::vector<std::byte> memory(1000);
  for (const auto& [device, offset] : places) {
    plan.chunks.push_back({.offset = 100 * plan.chunks.size(),
                           .stored_size = 100,
                           .raw_size = 100,
                           .first_copy = plan.copies.size(),
                           .copy_count = 1});
    plan.copies.emplace_back(internal::StridedCopy{.element_size = 100}, memory.data() + offset,
                             device);
  }
  std::vector<std::uint64_t> sizes;
  for (const internal::DirectRun& run :
       internal::DirectRunsOf(plan, {.chunk_count = places.size()})) {
    sizes.push_back(run.size_bytes);
  }
  return sizes;
}

TEST(DirectRunsTest, BreakWhereThePlaceDoes) {
  EXPECT_THAT(RunSizes({{0, 0}, {0, 100}, {0, 200}}), ElementsAre(300));
  EXPECT_THAT(RunSizes({{0, 0}, {0, 100}, {0, 300}}), ElementsAre(200, 100));
  EXPECT_THAT(RunSizes({{0, 100}, {0, 0}, {0, 100}}), ElementsAre(100, 200));
  EXPECT_THAT(RunSizes({{0, 0}, {1, 100}}), ElementsAre(100, 100));
  EXPECT_THAT(RunSizes({{0, 0}, {kHostDevice, 100}}), IsEmpty());
}

class DirectReadTest : public DeviceLoadFixture {
 protected:
  void OpenFiles(Codec codec = Codec::kNone, DescriptorOptions options = {}) {
    devices_ = std::make_shared<HostDevice>(HostDeviceOptions{.reads_files = true});
    OpenMatrix(codec);
    UseFiles(options);
  }
  void UseFiles(DescriptorOptions options = {}) {
    storage_ =
        std::make_shared<ReadingStorage>(std::make_shared<DescriptorStorage>(memory_, options));
    OpenHere();
  }
  void Damage(std::size_t chunk) {
    Bytes damaged = container_.blob(0);
    damaged[container_.blobs.at(0).records[chunk].offset + 17] ^= std::byte{1};
    ReplaceFile(*memory_, "c", container_.blobs.at(0).name, &damaged);
    OpenHere();
  }
  // All bytes arrive; so many of them past the host.
  void ExpectDirect(std::uint64_t bytes, const ReadOptions& options = kDirect) {
    const Bytes all = All();
    const std::uint64_t open_before = storage_->log().open_file_count;
    const auto memory = Allocate(kTensorBytes);
    const auto report = LoadAll(*memory, options);
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(ContentsOf(*memory), all);
    EXPECT_EQ(report->bytes_by_gpudirect_storage, bytes);
    EXPECT_EQ(report->bytes_verified_on_device, bytes);
    EXPECT_EQ(devices_->files().open_now(), 0u);
    EXPECT_EQ(storage_->log().open_file_count, open_before);
  }
  // The same for a part of the tensor in some layout.
  std::uint64_t BytesDirect(const Region& region, const std::vector<std::int64_t>& strides,
                            std::optional<Conversion> convert = {}) {
    const std::uint64_t element = convert ? DTypeSizeBytes(convert->to) : 4;
    const auto memory =
        Allocate(strides.empty() ? region.element_count() * element : 4 * kTensorBytes);
    ReadRequest request;
    request.Add("w", region, MutableMemoryView::Cuda(memory->addresses(), 0, nullptr, strides));
    request.items.back().convert = convert;
    const auto report = checkpoint_->Load(request, {}, kDirect);
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    return report.ok() ? report->bytes_by_gpudirect_storage : 0;
  }
};

TEST_F(DirectReadTest, ReadsWholeChunksPastTheHost) {
  OpenFiles();
  const Bytes all = All();
  const auto memory = Allocate(kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
  const ReadPlan plan = checkpoint_->Plan(request).value();
  storage_->ClearLog();
  const auto report = checkpoint_->Read(plan, kDirect);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->bytes_by_gpudirect_storage, kTensorBytes);
  EXPECT_EQ(report->bytes_verified_on_device, kTensorBytes);
  EXPECT_EQ(ContentsOf(*memory), all);
  EXPECT_THAT(storage_->log().reads, IsEmpty());
  // One read of each blob: chunks back to back are read at once.
  EXPECT_EQ(devices_->files().reads(), 2u);
  EXPECT_EQ(devices_->counters().bytes_to_device, 0u);
  EXPECT_EQ(devices_->counters().digests, kTensorBytes / kChunk);
}

TEST_F(DirectReadTest, IsOffUnlessAskedAndWhereOnlyVerifiedBytesMayArrive) {
  OpenFiles();
  ExpectDirect(0, {});
  ExpectDirect(0, {.isolate = true, .gpudirect_storage = true});
  EXPECT_EQ(devices_->files().opened(), 0u);
}

TEST_F(DirectReadTest, ManyThreadsShareTheFiles) {
  OpenFiles();
  const auto memory = Allocate(kTensorBytes);
  for (int i = 0; i < 20; ++i) {
    const auto report =
        checkpoint_->Load(EverySecondChunk(*memory), LoadContract::Partial(),
                          {.threads = 4, .verify_on_device = true, .gpudirect_storage = true});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->bytes_by_gpudirect_storage, kTensorBytes / 2);
    EXPECT_EQ(devices_->files().opened(), static_cast<std::uint64_t>(i + 1) * 2);
  }
}

// The host waits for what the caller queued, since such a read knows no stream.
TEST_F(DirectReadTest, ComesBehindTheCallersStream) {
  OpenFiles();
  const Bytes all = All();
  const auto memory = Allocate(kTensorBytes);
  const auto stream = devices_->MakeStream();
  for (int i = 0; i < 20; ++i) {
    stream->Run([&] { std::fill_n(memory->contents().begin(), kTensorBytes, std::byte{0x55}); });
  }
  ASSERT_TRUE(LoadAll(*memory, kDirect, stream.get()).ok());
  stream->Wait();
  EXPECT_EQ(ContentsOf(*memory), all);
}

TEST_F(DirectReadTest, WhatNeedsTheHostGoesThroughIt) {
  OpenFiles();
  const Region all = Region::Whole({kRows, kColumns});
  EXPECT_EQ(BytesDirect(all, {}), kTensorBytes);
  EXPECT_EQ(BytesDirect(Region::Of({{0, 1}, {kRows, 63}}), {}), 0u);
  EXPECT_EQ(BytesDirect(all, {400, 4}), 0u);
  EXPECT_EQ(BytesDirect(all, {4, 1024}), 0u);
  EXPECT_EQ(BytesDirect(all, {}, Conversion{DType::kF64}), 0u);
  // The first chunk of the range in the first blob is wanted in part; the other blob is whole.
  EXPECT_EQ(BytesDirect(Region::Of({{1, 0}, {255, kColumns}}), {}), 6 * kChunk);
  OpenFiles(Codec::kZstd);
  ExpectDirect(0);
}

TEST_F(DirectReadTest, WhatTwoItemsWantGoesThroughTheHost) {
  OpenFiles();
  const Bytes all = All();
  const auto memory = Allocate(2 * kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(memory->addresses().first(kTensorBytes), 0, nullptr));
  request.Add(
      "w", Box{{0, 0}, {16, kColumns}},
      MutableMemoryView::Cuda(memory->addresses().subspan(kTensorBytes, kChunk), 0, nullptr));
  const auto report = checkpoint_->Load(request, {}, kDirect);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->bytes_by_gpudirect_storage, 6 * kChunk);
  const Bytes arrived = ContentsOf(*memory);
  EXPECT_TRUE(std::equal(all.begin(), all.end(), arrived.begin()));
  EXPECT_TRUE(std::equal(all.begin(), all.begin() + kChunk, arrived.begin() + kTensorBytes));
}

// A range that goes to places apart is read in parts.
TEST_F(DirectReadTest, ReadsToEachPlaceByItself) {
  OpenFiles();
  const Bytes all = All();
  const auto first = Allocate(kTensorBytes, 0);
  const auto second = Allocate(kTensorBytes, 1);
  ReadRequest request;
  for (std::uint64_t row = 0; row < kRows; row += 16) {
    const DeviceMemory& to = row % 32 == 0 ? *first : *second;
    request.Add("w", Box{{row, 0}, {16, kColumns}},
                MutableMemoryView::Cuda(to.addresses().subspan(row * kColumns * 4, kChunk),
                                        row % 32 == 0 ? 0 : 1, nullptr));
  }
  const auto report = checkpoint_->Load(request, {}, kDirect);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->bytes_by_gpudirect_storage, kTensorBytes);
  for (std::uint64_t at = 0; at < kTensorBytes; at += kChunk) {
    const DeviceMemory& holder = at / kChunk % 2 == 0 ? *first : *second;
    EXPECT_TRUE(std::equal(all.begin() + static_cast<std::ptrdiff_t>(at),
                           all.begin() + static_cast<std::ptrdiff_t>(at + kChunk),
                           holder.contents().begin() + static_cast<std::ptrdiff_t>(at)));
  }
}

TEST_F(DirectReadTest, WhatIsNotOfferedIsReadByTheHost) {
  OpenMatrix();
  ExpectDirect(0);  // devices that read no files
  OpenFiles(Codec::kNone, {.is_direct = false});
  ExpectDirect(0);
  OpenFiles(Codec::kNone, {.has_descriptors = false});
  ExpectDirect(0);
  EXPECT_EQ(devices_->files().opened(), 0u);
  OpenFiles();
  devices_->files().Refuse();
  ExpectDirect(0);
}

TEST_F(DirectReadTest, DevicesThatReadNoFilesCostNoSecondDescriptor) {
  OpenMatrix();
  UseFiles();
  ExpectDirect(0, {});
  const std::uint64_t open_max = storage_->log().open_file_count_max;
  ExpectDirect(0);
  EXPECT_EQ(storage_->log().open_file_count_max, open_max);
}

TEST_F(DirectReadTest, DevicesWithoutDigestsLeaveItToTheHost) {
  devices_ = std::make_shared<HostDevice>(
      HostDeviceOptions{.computes_digests = false, .reads_files = true});
  OpenMatrix();
  UseFiles();
  ExpectDirect(0);
}

// After the first refusal the file is left to the host; the other one is not.
TEST_F(DirectReadTest, AReadThatIsRefusedIsDoneByTheHost) {
  OpenFiles();
  const auto memory = Allocate(kTensorBytes);
  devices_->files().FailRead(2, internal::MakeError(Code::kUnsupported, "not this way"));
  const auto report =
      checkpoint_->Load(EverySecondChunk(*memory), LoadContract::Partial(), kDirect);
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  // One chunk of the first blob's five, and all three of the second.
  EXPECT_EQ(report->bytes_by_gpudirect_storage, 4 * kChunk);
  EXPECT_EQ(devices_->files().reads(), 5u);
  const Bytes all = All();
  for (std::uint64_t at = 0; at < kTensorBytes; at += 2 * kChunk) {
    const auto begin = static_cast<std::ptrdiff_t>(at);
    EXPECT_TRUE(std::equal(all.begin() + begin, all.begin() + begin + kChunk,
                           memory->contents().begin() + begin));
  }
}

TEST_F(DirectReadTest, AnErrorOfTheFileFailsTheLoad) {
  for (const Status& error : {internal::ErrnoError("cuFileRead", EIO),
                              internal::MakeError(Code::kIncomplete, "the file ends here")}) {
    OpenFiles();
    devices_->files().FailRead(2, error);
    const auto memory = Allocate(kTensorBytes);
    const Status failed = LoadAll(*memory, kDirect).status();
    EXPECT_EQ(failed.code(), error.code());
    EXPECT_THAT(failed.message(), HasSubstr(error.message()));
    EXPECT_EQ(failed.place().path, BlobPath(1));
    EXPECT_EQ(failed.place().offset, container_.blobs.at(1).records[0].offset + 6 * kChunk / 2);
    EXPECT_EQ(failed.place().tensor, "w");
    ExpectStill(*memory);
    EXPECT_EQ(devices_->files().open_now(), 0u);
  }
}

TEST_F(DirectReadTest, DamageInTheFileIsToldAsOnTheHost) {
  for (std::size_t chunk = 0; chunk < 10; ++chunk) {
    OpenFiles();
    Damage(chunk);
    const auto memory = Allocate(kTensorBytes);
    const Status on_host = LoadAll(*memory).status();
    EXPECT_EQ(on_host.code(), Code::kCorrupt);
    EXPECT_EQ(LoadAll(*memory, kDirect).status().ToString(), on_host.ToString());
    ExpectStill(*memory);
  }
}

TEST_F(DirectReadTest, DamageOnTheWayIsNotThatOfTheFile) {
  OpenFiles();
  devices_->files().FlipBitInRead(2);
  const auto memory = Allocate(kTensorBytes);
  const Status error = LoadAll(*memory, kDirect).status();
  EXPECT_EQ(error.code(), Code::kDevice) << error.ToString();
  EXPECT_EQ(error.place().path, BlobPath(1));
  EXPECT_EQ(error.place().offset, container_.blobs.at(1).records[0].offset);
  EXPECT_EQ(error.place().tensor, "w");
}

// The latest files stay open, and no descriptor is closed before what was made of it.
TEST_F(DirectReadTest, ReadsMoreFilesThanStayOpen) {
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
  UseFiles();
  const auto memory = Allocate(kBlobs * 64);
  const auto report = LoadAll(*memory, {.threads = 3, .gpudirect_storage = true});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  EXPECT_EQ(report->bytes_by_gpudirect_storage, kBlobs * 64u);
  EXPECT_EQ(devices_->files().opened(), static_cast<std::uint64_t>(kBlobs));
  EXPECT_LE(devices_->files().open_max(), 32u + 3u);
  EXPECT_EQ(ContentsOf(*memory), NoiseBytes(3, kBlobs * 64));
}

// A file that cannot be opened is no reason of its own; the host tells it.
TEST_F(DirectReadTest, AFileThatIsMissingIsToldByTheHost) {
  OpenFiles();
  const auto memory = Allocate(kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
  const ReadPlan plan = checkpoint_->Plan(request).value();
  ReplaceFile(*memory_, "c", container_.blobs.at(1).name, nullptr);
  const Status error = checkpoint_->Read(plan, kDirect).status();
  EXPECT_EQ(error.code(), Code::kIncomplete) << error.ToString();
  EXPECT_EQ(error.place().rule, "R-BLB-01");
}

TEST_F(DirectReadTest, MeansNothingToTheHost) {
  OpenFiles();
  EXPECT_TRUE(ReadDense("w", Region::Whole({kRows, kColumns}), kDirect).ok());
  EXPECT_EQ(devices_->files().opened(), 0u);
}

}  // namespace
}  // namespace sealpoint::testing
