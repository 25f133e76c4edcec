// SPDX-License-Identifier: Apache-2.0
#include "lib/device/device_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "lib/device/cuda_runtime.h"
#include "tests/support/device/fake_cuda_driver.h"
#include "tests/unit/device/pattern.h"

namespace sealpoint::testing {
namespace {

namespace device = internal::device;

using device::CopyQueue;
using device::DeviceCopies;
using ::testing::HasSubstr;

class DeviceCopiesTest : public ::testing::Test {
 protected:
  DeviceCopies WithPool() {
    return DeviceCopies(runtime_, {.idle_queues = &idle_, .pinned_pool = pool_.get()});
  }
  static DeviceCopies::Options WithLabels() {
    return {.describe = [](std::uint32_t label, Status error) {
      return Status(std::move(error).AtTensor("t" + std::to_string(label)));
    }};
  }

  Result<DeviceCopies::Point> QueueCopy(DeviceCopies& copies, std::uint64_t size = 100,
                                        std::uint32_t label = 0, int device = 0) {
    const auto copy = [&](CopyQueue& queue) {
      return queue.CopyToHost({memory_.data(), 1, size}, MutableByteSpan(host_).first(size));
    };
    return copies.Queue(device, size, copy, label);
  }
  std::uint64_t Marks() const { return fake_.Calls("event_record"); }

  const Bytes memory_ = Pattern(16 * kMiB);
  Bytes host_ = Bytes(16 * kMiB);
  FakeCudaDriver fake_{2};
  std::shared_ptr<device::DeviceRuntime> runtime_ =
      device::MakeCudaRuntime([this]() -> Result<internal::cuda::Driver> { return fake_.table(); });
  std::unique_ptr<device::StagingPool> pool_ = device::StagingPool::Create(kMiB, 64 * kKiB).value();
  device::QueuePool idle_;
};

TEST_F(DeviceCopiesTest, ArriveOnceTheyWereAwaited) {
  DeviceCopies copies = WithPool();
  const auto first = QueueCopy(copies, 16 * kMiB - 1).value();
  EXPECT_EQ(Marks(), 0U);
  const auto second = QueueCopy(copies, 100).value();
  EXPECT_EQ(second.batch_count, first.batch_count) << "small ones arrive together";
  EXPECT_EQ(Marks(), 1U) << "a full batch is marked at once";
  EXPECT_GT(QueueCopy(copies, 100).value().batch_count, first.batch_count) << "up to 16 MiB";
  ASSERT_TRUE(copies.Wait(first).ok());
  EXPECT_TRUE(std::equal(host_.begin(), host_.end() - 1, memory_.begin()));
  EXPECT_TRUE(copies.WaitForAll().ok());
  EXPECT_TRUE(copies.Wait(first).ok()) << "what is done stays done";
}

TEST_F(DeviceCopiesTest, AFenceDoesNotWaitForWhatIsQueuedBehindIt) {
  DeviceCopies copies = WithPool();
  ASSERT_TRUE(QueueCopy(copies).ok());
  DeviceCopies::Fence fence;
  ASSERT_TRUE(copies.Mark(fence).ok());
  EXPECT_EQ(Marks(), 1U);
  ASSERT_TRUE(QueueCopy(copies).ok());
  ASSERT_TRUE(copies.Wait(fence).ok());
  EXPECT_EQ(Marks(), 1U);
}

TEST_F(DeviceCopiesTest, ABatchThatCannotBeMarkedIsAnError) {
  DeviceCopies copies = WithPool();
  ASSERT_TRUE(QueueCopy(copies).ok());
  fake_.Fail("event_record", kCudaIllegalAddress);
  const Status first = QueueCopy(copies, 16 * kMiB).status();
  EXPECT_THAT(first.message(), HasSubstr("cuEventRecord"));
  fake_.Fail("event_record", 0, 0);
  EXPECT_EQ(copies.WaitForAll(), first);
}

TEST_F(DeviceCopiesTest, APointThatCannotBeMarkedIsAnError) {
  DeviceCopies copies = WithPool();
  const auto point = QueueCopy(copies).value();
  fake_.Fail("event_record", kCudaIllegalAddress);
  EXPECT_THAT(copies.Wait(point).message(), HasSubstr("cuEventRecord"));
}

// What failed once stays failed, and nothing is queued behind it.
TEST_F(DeviceCopiesTest, AFailureStays) {
  DeviceCopies copies = WithPool();
  const auto point = QueueCopy(copies).value();
  fake_.Fail("event_synchronize", kCudaIllegalAddress);
  const Status first = copies.Wait(point);
  EXPECT_EQ(first.code(), Code::kDevice);
  EXPECT_THAT(first.message(), HasSubstr("cuEventSynchronize"));
  EXPECT_THAT(first.message(), HasSubstr("device 0"));
  fake_.Fail("event_synchronize", 0, 0);
  EXPECT_EQ(copies.Wait(point), first);
  EXPECT_EQ(copies.WaitForAll(), first);
  DeviceCopies::Fence fence;
  EXPECT_EQ(copies.Mark(fence), first);
  EXPECT_EQ(copies.WaitForStreams(), first);
  EXPECT_EQ(copies.FollowStream(0, nullptr), first);
  const std::uint64_t queued = fake_.Calls("copy_to_host");
  EXPECT_EQ(QueueCopy(copies).status(), first);
  EXPECT_EQ(fake_.Calls("copy_to_host"), queued);
  copies.Stop();
  EXPECT_EQ(copies.WaitForAll(), first) << "and not that they were stopped";
}

TEST_F(DeviceCopiesTest, AFailureBeforeTheFirstCopyStays) {
  DeviceCopies copies = WithPool();
  fake_.Fail("stream_create", kCudaIllegalAddress);
  const Status first = QueueCopy(copies).status();
  EXPECT_THAT(first.message(), HasSubstr("cuStreamCreate"));
  EXPECT_EQ(copies.WaitForAll(), first);
}

TEST_F(DeviceCopiesTest, NothingRunsOrIsQueuedAfterStop) {
  DeviceCopies copies = WithPool();
  ASSERT_TRUE(QueueCopy(copies).ok());
  copies.Stop();
  EXPECT_EQ(fake_.LiveStreams(), 0U);
  EXPECT_THAT(QueueCopy(copies).status().message(), HasSubstr("were stopped"));
}

TEST_F(DeviceCopiesTest, IdleQueuesAreUsedAgain) {
  for (int i = 0; i < 2; ++i) {
    DeviceCopies copies = WithPool();
    ASSERT_TRUE(QueueCopy(copies).ok());
  }
  EXPECT_EQ(host_[0], memory_[0]) << "awaited before the queue went back";
  EXPECT_EQ(fake_.Calls("stream_create"), 1U);
  EXPECT_EQ(fake_.LiveStreams(), 1U);
}

TEST_F(DeviceCopiesTest, QueuesThatFailedAreNotUsedAgain) {
  {
    DeviceCopies copies = WithPool();
    const auto point = QueueCopy(copies).value();
    fake_.Fail("event_synchronize", kCudaIllegalAddress);
    EXPECT_FALSE(copies.Wait(point).ok());
  }
  EXPECT_EQ(fake_.LiveStreams(), 0U);
}

TEST_F(DeviceCopiesTest, WithoutAPoolQueuesEndWithIt) {
  {
    DeviceCopies copies(runtime_);
    ASSERT_TRUE(QueueCopy(copies).ok());
    EXPECT_EQ(fake_.LiveStreams(), 1U);
  }
  EXPECT_EQ(host_[0], memory_[0]);
  EXPECT_EQ(fake_.LiveStreams(), 0U);
}

TEST_F(DeviceCopiesTest, AStreamIsFollowedOnceUntilItIsForgotten) {
  DeviceCopies copies(runtime_);
  ASSERT_TRUE(copies.FollowStream(0, nullptr).ok());
  ASSERT_TRUE(copies.FollowStream(0, nullptr).ok());
  EXPECT_EQ(fake_.Calls("stream_wait_event"), 1U);
  copies.ForgetStreams();
  ASSERT_TRUE(copies.FollowStream(0, nullptr).ok());
  EXPECT_EQ(fake_.Calls("stream_wait_event"), 2U);
}

TEST_F(DeviceCopiesTest, WaitForStreamsWaitsAlsoWithoutACopy) {
  DeviceCopies copies(runtime_);
  ASSERT_TRUE(copies.FollowStream(0, nullptr).ok());
  ASSERT_TRUE(copies.WaitForAll().ok());
  EXPECT_EQ(fake_.Calls("event_synchronize"), 0U);
  ASSERT_TRUE(copies.WaitForStreams().ok());
  EXPECT_EQ(fake_.Calls("event_synchronize"), 1U);
}

TEST_F(DeviceCopiesTest, AFenceIsBehindWhatWasQueuedOnAllDevices) {
  DeviceCopies copies(runtime_);
  ASSERT_TRUE(QueueCopy(copies, 100, 0, 0).ok());
  ASSERT_TRUE(QueueCopy(copies, 200, 0, 1).ok());
  DeviceCopies::Fence fence;
  ASSERT_TRUE(copies.Mark(fence).ok());
  EXPECT_EQ(fence.size(), 2U);
  ASSERT_TRUE(QueueCopy(copies, 300).ok());
  ASSERT_TRUE(copies.Wait(fence).ok());
  EXPECT_EQ(host_[199], memory_[199]);
  EXPECT_EQ(Marks(), 2U) << "what came later has no ticket yet";
}

// A ticket of its own for each label, so that an error is described by the right one.
TEST_F(DeviceCopiesTest, AnErrorIsDescribedByItsLabel) {
  for (std::uint64_t failing = 1; failing <= 3; ++failing) {
    DeviceCopies copies(runtime_, WithLabels());
    for (std::uint32_t label = 1; label <= 3; ++label) {
      ASSERT_TRUE(QueueCopy(copies, 100, label).ok());
    }
    fake_.Fail("event_synchronize", kCudaIllegalAddress, failing);
    const Status error = copies.WaitForAll();
    fake_.Fail("event_synchronize", 0, 0);
    EXPECT_EQ(error.place().tensor, "t" + std::to_string(failing));
  }
}

TEST_F(DeviceCopiesTest, ALabelInARowIsAwaitedOnce) {
  DeviceCopies copies(runtime_);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(QueueCopy(copies, kMiB).ok());
  const std::uint64_t before = fake_.Calls("event_synchronize");
  ASSERT_TRUE(copies.WaitForAll().ok());
  EXPECT_EQ(fake_.Calls("event_synchronize") - before, 1U);
}

TEST_F(DeviceCopiesTest, AnErrorOfQueueingIsDescribedToo) {
  DeviceCopies copies(runtime_, WithLabels());
  fake_.Fail("copy_to_host", kCudaIllegalAddress);
  EXPECT_EQ(QueueCopy(copies, 100, 5).status().place().tensor, "t5");
}

}  // namespace
}  // namespace sealpoint::testing
