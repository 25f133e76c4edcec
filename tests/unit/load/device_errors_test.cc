// SPDX-License-Identifier: Apache-2.0
#include "tests/support/container/rule_matchers.h"
#include "tests/unit/load/device_load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DeviceErrorsTest : public DeviceLoadFixture {
 protected:
  void ExpectFailure(const ReadOptions& options) {
    const auto memory = Allocate(kTensorBytes);
    const Status error = LoadAll(*memory, options).status();
    EXPECT_EQ(error.code(), Code::kDevice) << error.ToString();
    EXPECT_EQ(error.place().tensor, "w");
    ExpectStill(*memory);
  }
};

TEST_F(DeviceErrorsTest, ADeviceThatIsNotThereIsToldBeforeAnythingIsRead) {
  OpenMatrix();
  const auto memory = Allocate(kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(memory->addresses(), 7, nullptr));
  const ReadPlan plan = checkpoint_->Plan(request).value();
  storage_->ClearLog();
  const Status error = checkpoint_->Read(plan).status();
  EXPECT_EQ(error.code(), Code::kDevice);
  EXPECT_EQ(error.place().tensor, "w");
  EXPECT_THAT(error.message(), HasSubstr("device 7"));
  EXPECT_THAT(storage_->log().reads, IsEmpty());
}

TEST_F(DeviceErrorsTest, AnyCopyThatFailsWhenQueuedFailsTheLoad) {
  OpenMatrix();
  std::uint64_t k = 1;
  for (;; ++k) {
    const std::uint64_t copies_before = devices_->counters().copies;
    devices_->FailCopyWhenQueued(k);
    ExpectFailure({.threads = k % 2 == 0 ? 1 : 3});
    EXPECT_GE(devices_->counters().copies - copies_before, k);
    if (k == kTensorBytes / kChunk) break;
  }
  const auto memory = Allocate(kTensorBytes);
  EXPECT_TRUE(LoadAll(*memory).ok());
  EXPECT_EQ(ContentsOf(*memory), All());
}

TEST_F(DeviceErrorsTest, AnyCopyThatFailsWhenItRunsFailsTheLoad) {
  OpenMatrix();
  for (std::uint64_t k = 1; k <= kTensorBytes / kChunk; ++k) {
    devices_->FailCopyWhenRun(k);
    ExpectFailure({.threads = k % 2 == 0 ? 1 : 3});
  }
  // All staging memory came back.
  EXPECT_EQ(All().size(), kTensorBytes);
}

TEST_F(DeviceErrorsTest, TheTensorWhoseCopyFailedIsNamed) {
  MiniSpec spec;
  const Bytes bytes = NoiseBytes(2, 256);
  for (const std::string name : {"a", "b", "c", "d"}) {
    spec.tensors.push_back(CutTensor(name, DType::kUInt8, {256}, bytes, {Region::Whole({256})}));
  }
  Open(spec);
  UseDevices(*checkpoint_, devices_);
  const auto memory = Allocate(4 * 256);
  for (std::uint64_t i = 0; i < 4; ++i) {
    ReadRequest request;
    for (std::uint64_t n = 0; n < 4; ++n) {
      request.Add(std::string(1, static_cast<char>('a' + n)),
                  MutableMemoryView::Cuda(memory->addresses().subspan(n * 256, 256), 0, nullptr));
    }
    devices_->FailCopyWhenRun(i + 1);
    const Status error = checkpoint_->Load(request).status();
    EXPECT_EQ(error.code(), Code::kDevice);
    EXPECT_EQ(error.place().tensor, std::string(1, static_cast<char>('a' + i)));
  }
}

TEST_F(DeviceErrorsTest, ADeviceThatIsLostOnTheWay) {
  for (const std::uint64_t reads_before : {0u, 1u, 3u, 7u}) {
    devices_ = std::make_shared<HostDevice>();
    OpenMatrix();
    std::uint64_t reads = 0;
    auto losing = std::make_shared<ReadingStorage>(memory_, [&](const ReadCall& call) {
      if (call.size == kChunk && reads++ == reads_before) devices_->LoseDevice(0);
      return Status();
    });
    checkpoint_ = Checkpoint::Open("c", {.storage = losing}).value();
    UseDevices(*checkpoint_, devices_);
    const auto memory = Allocate(kTensorBytes);
    const Status error =
        checkpoint_->Load(EverySecondChunk(*memory), LoadContract::Partial()).status();
    EXPECT_EQ(error.code(), Code::kDevice) << error.ToString();
    EXPECT_EQ(error.place().tensor, "w");
    EXPECT_THAT(error.message(), HasSubstr("lost"));
    ExpectStill(*memory);
  }
}

TEST_F(DeviceErrorsTest, AnyTicketThatCannotBeHadFailsTheLoad) {
  OpenMatrix();
  const auto memory = Allocate(kTensorBytes);
  for (const bool verifies : {false, true}) {
    const ReadOptions options{.threads = 1, .verify_on_device = verifies};
    const std::uint64_t before = devices_->counters().marks;
    ASSERT_TRUE(LoadAll(*memory, options).ok());
    const std::uint64_t count = devices_->counters().marks - before;
    EXPECT_GE(count, 1u);
    for (std::uint64_t nth = 1; nth <= count; ++nth) {
      devices_->FailMark(nth);
      const Status error = LoadAll(*memory, options).status();
      EXPECT_EQ(error.code(), Code::kDevice) << nth << ": " << error.ToString();
      EXPECT_EQ(error.place().tensor, "w") << nth;
    }
  }
}

TEST_F(DeviceErrorsTest, AFileThatIsGoneOrCannotBeReadFailsTheLoad) {
  OpenMatrix();
  const auto memory = Allocate(kTensorBytes);
  const std::string name = container_.blobs.at(1).name;
  auto failing = std::make_shared<ReadingStorage>(memory_, [&](const ReadCall& call) {
    return call.size >= kChunk ? Status(Code::kIo, "injected") : Status();
  });
  checkpoint_ = Checkpoint::Open("c", {.storage = failing}).value();
  UseDevices(*checkpoint_, devices_);
  EXPECT_EQ(LoadAll(*memory).status().code(), Code::kIo);
  OpenHere();
  ReplaceFile(*memory_, "c", name, nullptr);
  const Status error = LoadAll(*memory).status();
  EXPECT_EQ(error.code(), Code::kIncomplete) << error.ToString();
  EXPECT_THAT(error.place().path, HasSubstr(name));
}

// A load to both kinds of memory: what is read in place fails as elsewhere.
TEST_F(DeviceErrorsTest, DamageInWhatGoesToTheHostFailsTheLoadToo) {
  MiniSpec spec;
  const Bytes bytes = NoiseBytes(2, 8192);
  const Region whole = Region::Whole({8192});
  spec.tensors.push_back(CutTensor("device", DType::kUInt8, {8192}, bytes, {whole}, {0}));
  spec.tensors.push_back(CutTensor("host", DType::kUInt8, {8192}, bytes, {whole}, {1}));
  Open(spec);
  const auto& record = container_.blobs.at(1).records[1];
  Bytes damaged = container_.blob(1);
  damaged[record.offset] ^= std::byte{1};
  ReplaceFile(*memory_, "c", container_.blobs.at(1).name, &damaged);
  OpenHere();
  const auto memory = Allocate(8192);
  Bytes host(8192);
  ReadRequest request;
  request.Add("device", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
  request.Add("host", MutableMemoryView::Host(host));
  const Status error = checkpoint_->Load(request).status();
  EXPECT_THAT(error, BreaksRule(Code::kCorrupt, "R-CHK-02", record.offset));
  EXPECT_EQ(error.place().tensor, "host");
}

// The bytes of a damaged chunk stay away, and those that arrived are whole chunks.
TEST_F(DeviceErrorsTest, ADamagedChunkNeverReachesTheDevice) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    OpenMatrix(codec);
    const Bytes all = All();
    const auto& record = container_.blobs.at(0).records[5];
    Bytes damaged = container_.blob(0);
    damaged[record.offset + record.stored_size / 2] ^= std::byte{1};
    ReplaceFile(*memory_, "c", container_.blobs.at(0).name, &damaged);
    OpenHere();
    const auto memory = Allocate(kTensorBytes);
    const Status error = LoadAll(*memory).status();
    EXPECT_THAT(error, BreaksRule(Code::kCorrupt, codec == Codec::kNone ? "R-CHK-02" : "R-CHK-01",
                                  record.offset));
    EXPECT_EQ(error.place().tensor, "w");
    const Bytes arrived = ContentsOf(*memory);
    const auto begin = arrived.begin() + 5 * kChunk;
    EXPECT_THAT(Bytes(begin, begin + kChunk), Each(std::byte{0xee}));
    EXPECT_TRUE(std::equal(arrived.begin(), begin, all.begin()));
    ExpectStill(*memory);
  }
}

TEST_F(DeviceErrorsTest, AnElementThatDoesNotConvertIsNamedAsOnTheHost) {
  MiniSpec spec;
  Bytes bytes(200 * 100, std::byte{1});
  bytes[137 * 100 + 55] = std::byte{200};
  spec.tensors.push_back(
      CutTensor("w", DType::kUInt8, {200, 100}, bytes, {Region::Whole({200, 100})}));
  Open(spec);
  OpenHere({.memory_budget_bytes = 64 * kKiB});
  const Region box = Region::Of({{0, 20}, {200, 60}});
  const auto memory = Allocate(200 * 60);
  Bytes host(200 * 60);
  std::vector<Status> errors;
  for (const bool on_device : {false, true}) {
    ReadRequest request;
    // Transposed, so that staging has another order than the elements.
    const std::vector<std::int64_t> strides = {1, 200};
    request.Add("w", box,
                on_device ? MutableMemoryView::Cuda(memory->addresses(), 0, nullptr, strides)
                          : MutableMemoryView::Host(host, strides));
    request.items.back().convert = Conversion{DType::kInt8};
    errors.push_back(checkpoint_->Load(request).status());
  }
  EXPECT_EQ(errors[0].code(), Code::kMismatch);
  EXPECT_EQ(errors[1].ToString(), errors[0].ToString());
}

}  // namespace
}  // namespace sealpoint::testing
