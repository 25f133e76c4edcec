// SPDX-License-Identifier: Apache-2.0
//
// Fingerprints of device memory, of devices that are late.
#include "lib/transfer/compute_fingerprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/container/noise.h"
#include "tests/support/device/host_device.h"

namespace sealpoint::testing {
namespace {

class DeviceFingerprintTest : public ::testing::Test {
 protected:
  DeviceFingerprintTest() : memory_(devices_->Allocate(1, bytes_.size())) {
    std::ranges::copy(bytes_, memory_->contents().begin());
  }
  static std::shared_ptr<HostDevice> MakeDevices(bool has_kernels, bool has_memory = true) {
    return std::make_shared<HostDevice>(
        HostDeviceOptions{.delay_max = std::chrono::microseconds(50),
                          .has_kernels = has_kernels,
                          .has_memory_for_kernels = has_memory});
  }
  void Use(std::shared_ptr<HostDevice> devices) {
    devices_ = std::move(devices);
    memory_ = devices_->Allocate(1, bytes_.size());
    std::ranges::copy(bytes_, memory_->contents().begin());
  }
  Result<Fingerprint> OfDevice(const Region& region, std::vector<std::int64_t> strides = {},
                               std::size_t origin = 0, void* stream = nullptr) {
    return internal::transfer::ComputeFingerprint(
        shape_, 2, region,
        MemoryView::Cuda(memory_->address(), bytes_.size(), 1, stream, std::move(strides), origin),
        devices_, &queues_);
  }
  Fingerprint OfHost(const Region& region, std::vector<std::int64_t> strides = {},
                     std::size_t origin = 0) {
    return ComputeFingerprint(
               shape_, 2, region,
               MemoryView::Host(bytes_.data(), bytes_.size(), std::move(strides), origin))
        .value();
  }

  const Shape shape_ = {1500, 3000};  // three pieces, the last one short
  const Bytes bytes_ = NoiseBytes(7, 1500 * 3000 * 2);
  std::shared_ptr<HostDevice> devices_ = MakeDevices(true);
  internal::device::QueuePool queues_;
  std::unique_ptr<DeviceMemory> memory_;
};

class DeviceWithoutKernelsTest : public DeviceFingerprintTest {
 protected:
  DeviceWithoutKernelsTest() { Use(MakeDevices(false)); }
};

TEST_F(DeviceFingerprintTest, IsThatOfTheSameElementsOnTheHost) {
  const Region whole = Region::Whole(shape_);
  EXPECT_EQ(OfDevice(whole).value(), OfHost(whole));
  EXPECT_EQ(devices_->counters().fingerprints, 1U);
  EXPECT_EQ(devices_->counters().bytes_to_host, 0U);
  const Region columns = Region::Of({{0, 100}, {1500, 700}});
  EXPECT_EQ(OfDevice(columns, {6000, 2}, 200).value(), OfHost(columns, {6000, 2}, 200));
  const Region run({{0, 0}, {1500, 3000}}, {5, 4'000'001});
  EXPECT_EQ(OfDevice(run, {6000, 2}).value(), OfHost(run, {6000, 2}));
}

TEST_F(DeviceFingerprintTest, ComesAfterTheCallersStream) {
  const std::unique_ptr<HostStream> stream = devices_->MakeStream();
  stream->Run([&] { memory_->contents()[9] ^= std::byte{1}; });
  const Region whole = Region::Whole(shape_);
  const Fingerprint later = OfDevice(whole, {}, 0, stream.get()).value();
  EXPECT_NE(later, OfHost(whole));
}

TEST_F(DeviceFingerprintTest, QueuesAreUsedAgain) {
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(OfDevice(Region::Whole(shape_)).ok());
  EXPECT_EQ(devices_->counters().queues, 1U);
}

TEST_F(DeviceFingerprintTest, AKernelThatFailsIsAnError) {
  devices_->LoseDevice(1);
  EXPECT_EQ(OfDevice(Region::Whole(shape_)).status().code(), Code::kDevice);
}

TEST_F(DeviceFingerprintTest, MemoryIsCopiedIfTheDeviceHasNoneForKernels) {
  Use(MakeDevices(true, false));
  const Region whole = Region::Whole(shape_);
  EXPECT_EQ(OfDevice(whole).value(), OfHost(whole));
  EXPECT_EQ(devices_->counters().bytes_to_host, bytes_.size());
}

TEST_F(DeviceWithoutKernelsTest, MemoryIsCopied) {
  const Region run({{0, 0}, {1500, 3000}}, {5, 4'000'001});
  EXPECT_EQ(OfDevice(run, {6000, 2}).value(), OfHost(run, {6000, 2}));
  EXPECT_EQ(devices_->counters().fingerprints, 0U);
  EXPECT_EQ(devices_->counters().bytes_to_host, run.run.size() * 2);
}

TEST_F(DeviceWithoutKernelsTest, ACopyThatFailsIsAnError) {
  devices_->FailCopyWhenRun(2);
  EXPECT_EQ(OfDevice(Region::Whole(shape_)).status().code(), Code::kDevice);
  devices_->FailCopyWhenQueued(3);
  EXPECT_EQ(OfDevice(Region::Whole(shape_)).status().code(), Code::kDevice);
}

}  // namespace
}  // namespace sealpoint::testing
