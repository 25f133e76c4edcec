// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/load/device_load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::IsEmpty;

const ReadOptions kVerify{.verify_on_device = true};

class DeviceVerifyTest : public DeviceLoadFixture {
 protected:
  std::uint64_t BytesVerified(const Region& region, const std::vector<std::int64_t>& strides,
                              std::optional<Conversion> convert = {}) {
    const std::uint64_t element = convert ? DTypeSizeBytes(convert->to) : 4;
    const auto memory =
        Allocate(strides.empty() ? region.element_count() * element : 4 * kTensorBytes);
    ReadRequest request;
    request.Add("w", region, MutableMemoryView::Cuda(memory->addresses(), 0, nullptr, strides));
    request.items.back().convert = convert;
    const auto report = checkpoint_->Load(request, {}, kVerify);
    EXPECT_TRUE(report.ok()) << report.error().ToString();
    return report.ok() ? report->bytes_verified_on_device : 0;
  }
};

// Also with codecs, many threads, and a budget that makes windows be used again and again.
TEST_F(DeviceVerifyTest, FindsABitThatAnyCopyFlipped) {
  for (const Codec codec : {Codec::kNone, Codec::kZstd}) {
    OpenMatrix(codec, {.memory_budget_bytes = 64 * kKiB});
    for (std::uint64_t k = 1; k <= kTensorBytes / kChunk; ++k) {
      const auto memory = Allocate(kTensorBytes);
      devices_->FlipBitInCopy(k);
      const Status error = LoadAll(*memory, {.threads = 1, .verify_on_device = true}).status();
      EXPECT_EQ(error.code(), Code::kDevice) << error.ToString();
      EXPECT_EQ(error.place().tensor, "w");
      const int blob = k <= 10 ? 0 : 1;
      EXPECT_EQ(error.place().path, BlobPath(blob));
      EXPECT_EQ(error.place().offset,
                container_.blobs.at(blob).records[(k - 1) - (blob == 0 ? 0 : 10)].offset);
    }
  }
}

TEST_F(DeviceVerifyTest, IsOffUnlessAsked) {
  OpenMatrix();
  const auto memory = Allocate(kTensorBytes);
  devices_->FlipBitInCopy(3);
  const auto report = LoadAll(*memory);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->bytes_verified_on_device, 0u);
  EXPECT_EQ(devices_->counters().digests, 0u);
  EXPECT_NE(ContentsOf(*memory), All());
}

TEST_F(DeviceVerifyTest, VerifiesAllOfADenseTensor) {
  for (const Codec codec : {Codec::kNone, Codec::kByteSplitZstd}) {
    for (const int threads : {1, 3}) {
      OpenMatrix(codec);
      const auto memory = Allocate(kTensorBytes);
      const auto report = LoadAll(*memory, {.threads = threads, .verify_on_device = true});
      ASSERT_TRUE(report.ok()) << report.error().ToString();
      EXPECT_EQ(report->bytes_verified_on_device, kTensorBytes);
      EXPECT_EQ(ContentsOf(*memory), All());
    }
  }
}

TEST_F(DeviceVerifyTest, TellsWhatItCouldNotVerify) {
  OpenMatrix();
  const Region all = Region::Whole({kRows, kColumns});
  // The first and the last chunk in part.
  EXPECT_EQ(BytesVerified(Region::Of({{1, 0}, {250, kColumns}}), {}), kTensorBytes - 2 * kChunk);
  EXPECT_EQ(BytesVerified(Region::Of({{0, 1}, {kRows, 63}}), {}), 0u);
  EXPECT_EQ(BytesVerified(all, {400, 4}), 0u);
  EXPECT_EQ(BytesVerified(all, {4, 1024}), 0u);
  EXPECT_EQ(BytesVerified(all, {}, Conversion{DType::kF64}), 0u);
}

// Chunks of many lengths and tensors in one window: each digest meets its own, whether they lie
// apart or back to back.
TEST_F(DeviceVerifyTest, VerifiesManySmallTensorsInAnyOrderOfMemory) {
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
      request.Add("t" + std::to_string(100 + i),
                  MutableMemoryView::Cuda(memory->addresses().subspan(offset, contents[i].size()),
                                          0, nullptr));
      total += contents[i].size();
    }
    const auto report = checkpoint_->Load(request, {}, kVerify);
    ASSERT_TRUE(report.ok()) << report.error().ToString();
    EXPECT_EQ(report->bytes_verified_on_device, total);
  }
}

TEST_F(DeviceVerifyTest, ADeviceWithoutDigestsIsRefusedBeforeAnythingIsRead) {
  devices_ = std::make_shared<HostDevice>(HostDeviceOptions{.computes_digests = false});
  OpenMatrix();
  const auto memory = Allocate(kTensorBytes);
  ReadRequest request;
  request.Add("w", MutableMemoryView::Cuda(memory->addresses(), 0, nullptr));
  const ReadPlan plan = checkpoint_->Plan(request).value();
  storage_->ClearLog();
  const Status error = checkpoint_->Read(plan, kVerify).status();
  EXPECT_EQ(error.code(), Code::kUnsupported);
  EXPECT_EQ(error.place().tensor, "w");
  EXPECT_THAT(storage_->log().reads, IsEmpty());
  EXPECT_TRUE(checkpoint_->Read(plan).ok());
}

TEST_F(DeviceVerifyTest, MeansNothingToTheHost) {
  OpenMatrix();
  EXPECT_TRUE(ReadDense("w", Region::Whole({kRows, kColumns}), kVerify).ok());
}

}  // namespace
}  // namespace sealpoint::testing
