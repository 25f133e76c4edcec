// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/device_copies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "lib/device/cuda_runtime.h"
#include "lib/pipeline/engine_parts.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/device/fake_cuda_driver.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using internal::CopyQueue;
using internal::DeviceCopies;
using ::testing::HasSubstr;

class DeviceCopiesTest : public ::testing::Test {
 protected:
  DeviceCopiesTest() {
    engine_->parts().device = internal::MakeCudaRuntime(
        [this]() -> Result<internal::cuda::Driver> { return fake_.table(); });
  }

  Result<DeviceCopies::Batch*> QueueCopy(std::uint64_t size = 100) {
    const auto view = MemoryView::Cuda(memory_.data(), 0, nullptr);
    return copies_.Queue(view, size, [&](CopyQueue& queue) {
      return queue.CopyToHost({memory_.data(), 1, size}, MutableByteSpan(host_).first(size));
    });
  }

  const Bytes memory_ = NoiseBytes(1, kMiB);
  Bytes host_ = Bytes(kMiB);
  FakeCudaDriver fake_;
  const std::unique_ptr<Engine> engine_ = SmallEngine(MemoryStorage());
  DeviceCopies copies_{engine_->parts()};
};

TEST_F(DeviceCopiesTest, ArriveOnceTheyWereAwaited) {
  DeviceCopies::Batch* const batch = QueueCopy(kMiB - 1).value();
  EXPECT_EQ(QueueCopy(100).value(), batch) << "small ones arrive together";
  EXPECT_NE(QueueCopy(100).value(), batch) << "up to a MiB";
  ASSERT_TRUE(copies_.Await(*batch).ok());
  EXPECT_TRUE(std::equal(host_.begin(), host_.end() - 1, memory_.begin()));
  EXPECT_TRUE(copies_.AwaitAll().ok());
}

TEST_F(DeviceCopiesTest, AFullBatchIsMarkedAtOnce) {
  ASSERT_TRUE(QueueCopy().ok());
  fake_.Fail("event_record", kCudaIllegalAddress);
  const Status first = QueueCopy(kMiB).status();
  EXPECT_THAT(first.message(), HasSubstr("cuEventRecord"));
  fake_.Fail("event_record", 0, 0);
  EXPECT_EQ(copies_.AwaitAll(), first);
}

TEST_F(DeviceCopiesTest, ABatchThatCannotBeMarkedIsAnError) {
  DeviceCopies::Batch* const batch = QueueCopy().value();
  fake_.Fail("event_record", kCudaIllegalAddress);
  EXPECT_THAT(copies_.Await(*batch).message(), HasSubstr("cuEventRecord"));
}

// What failed once stays failed, and nothing is queued behind it.
TEST_F(DeviceCopiesTest, AFailureStays) {
  DeviceCopies::Batch* const batch = QueueCopy().value();
  fake_.Fail("event_synchronize", kCudaIllegalAddress);
  const Status first = copies_.Await(*batch);
  EXPECT_THAT(first.message(), HasSubstr("cuEventSynchronize"));
  fake_.Fail("event_synchronize", 0, 0);
  EXPECT_EQ(copies_.Await(*batch), first);
  EXPECT_EQ(copies_.AwaitAll(), first);
  const std::uint64_t copies = fake_.Calls("copy_to_host");
  EXPECT_EQ(QueueCopy().status(), first);
  EXPECT_EQ(fake_.Calls("copy_to_host"), copies);
  copies_.Stop();
  EXPECT_EQ(copies_.AwaitAll(), first) << "and not that they were stopped";
}

TEST_F(DeviceCopiesTest, AFailureBeforeTheFirstCopyStays) {
  fake_.Fail("stream_create", kCudaIllegalAddress);
  const Status first = QueueCopy().status();
  EXPECT_THAT(first.message(), HasSubstr("cuStreamCreate"));
  EXPECT_EQ(copies_.AwaitAll(), first);
}

TEST_F(DeviceCopiesTest, NothingRunsOrIsQueuedAfterStop) {
  ASSERT_TRUE(QueueCopy().ok());
  copies_.Stop();
  EXPECT_EQ(fake_.LiveStreams(), 0U);
  EXPECT_THAT(QueueCopy().status().message(), HasSubstr("were stopped"));
}

}  // namespace
}  // namespace sealpoint::testing
