// SPDX-License-Identifier: Apache-2.0
// What of the pool is pinned once a device is used. The stand-in aborts where memory is pinned
// twice, unpinned without being pinned, or stays pinned.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lib/device/staging_pool.h"
#include "tests/support/device/host_device.h"
#include "tests/support/process/in_child.h"

namespace sealpoint::internal::device {
namespace {

using testing::HoldsInChild;
using testing::HostDevice;

constexpr std::uint64_t kPinBuffer = 64 * kKiB;

class StagingPoolPin : public ::testing::Test {
 protected:
  std::unique_ptr<StagingPool> MakePool(std::uint64_t budget = 4 * kPinBuffer) const {
    return StagingPool::Create(budget, kPinBuffer).value();
  }

  std::shared_ptr<HostDevice> device_ = std::make_shared<HostDevice>();
  std::unique_ptr<CopyQueue> queue_ = device_->MakeQueue(0).value();  // what pinning needs
};

TEST_F(StagingPoolPin, NothingIsPinnedWhereNoDeviceIsUsed) {
  const auto pool = MakePool();
  EXPECT_FALSE(pool->Acquire()->is_pinned());
  EXPECT_EQ(pool->pinned_bytes(), 0U);
}

TEST_F(StagingPoolPin, BuffersMadeBeforeAndAfterArePinnedWhenLent) {
  const auto pool = MakePool();
  static_cast<void>(pool->Acquire().value());
  pool->PinWith(device_);
  EXPECT_EQ(pool->pinned_bytes(), 0U);
  const StagingBuffer old = pool->Acquire().value();
  const StagingBuffer made = pool->Acquire().value();
  EXPECT_TRUE(old.is_pinned() && made.is_pinned());
  EXPECT_EQ(pool->mapping_count(), 2U);
  EXPECT_EQ(pool->pinned_bytes(), 2 * kPinBuffer);
  EXPECT_EQ(device_->counters().pinned_bytes, 2 * kPinBuffer);
}

TEST_F(StagingPoolPin, ABufferIsPinnedOnce) {
  const auto pool = MakePool();
  pool->PinWith(device_);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(pool->Acquire()->is_pinned());
  EXPECT_EQ(device_->counters().pins, 1U);
}

TEST_F(StagingPoolPin, ABufferThatWasLentMeanwhileIsPinnedTheNextTime) {
  const auto pool = MakePool(2 * kPinBuffer);
  StagingBuffer lent = pool->Acquire().value();
  pool->PinWith(device_);
  EXPECT_FALSE(lent.is_pinned());
  lent = StagingBuffer();
  EXPECT_TRUE(pool->Acquire()->is_pinned());
}

TEST_F(StagingPoolPin, ReservePinsWhatIsFree) {
  const auto pool = MakePool();
  ASSERT_TRUE(pool->Reserve(2).ok());
  EXPECT_EQ(pool->pinned_bytes(), 0U);
  pool->PinWith(device_);
  ASSERT_TRUE(pool->Reserve(3).ok());
  EXPECT_EQ(pool->pinned_bytes(), 3 * kPinBuffer);
  const StagingBuffer first = pool->Acquire().value();
  EXPECT_EQ(device_->counters().pins, 3U);
}

TEST_F(StagingPoolPin, ScratchIsPinnedWhereItIsKept) {
  const auto pool = MakePool();
  pool->PinWith(device_);
  EXPECT_TRUE(pool->AcquireScratch(kPinBuffer)->is_pinned());
  EXPECT_TRUE(pool->AcquireScratch(kPinBuffer)->is_pinned());
  EXPECT_EQ(device_->counters().pins, 1U);
  EXPECT_FALSE(pool->AcquireScratch(5 * kPinBuffer)->is_pinned()) << "unmapped when it comes back";
}

TEST_F(StagingPoolPin, EvictedScratchIsUnpinned) {
  const auto pool = MakePool(2 * kPinBuffer);
  pool->PinWith(device_);
  static_cast<void>(pool->AcquireScratch(2 * kPinBuffer).value());
  static_cast<void>(pool->AcquireScratch(kPinBuffer).value());
  EXPECT_EQ(pool->pinned_bytes(), kPinBuffer);
  EXPECT_EQ(device_->counters().pinned_bytes, kPinBuffer);
}

TEST_F(StagingPoolPin, TheDestructorUnpinsBuffersAndScratch) {
  auto pool = MakePool();
  pool->PinWith(device_);
  static_cast<void>(pool->Acquire().value());
  static_cast<void>(pool->AcquireScratch(kPinBuffer).value());
  EXPECT_EQ(device_->counters().pinned_bytes, 2 * kPinBuffer);
  pool.reset();
  EXPECT_EQ(device_->counters().pinned_bytes, 0U);
}

TEST_F(StagingPoolPin, MemoryThatCannotBePinnedIsLentAsItIsAndNotTriedAgain) {
  const auto pool = MakePool();
  pool->PinWith(device_);
  EXPECT_TRUE(pool->Acquire()->is_pinned());
  EXPECT_TRUE(pool->pin_failure().ok());
  device_->RefusePins();
  const StagingBuffer pinned = pool->Acquire().value();
  const StagingBuffer pageable = pool->Acquire().value();
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_FALSE(pageable.is_pinned());
  EXPECT_EQ(pool->pin_failure().code(), Code::kDevice);
  EXPECT_TRUE(pool->Reserve(4).ok());
  EXPECT_EQ(pool->pinned_bytes(), kPinBuffer);
}

TEST_F(StagingPoolPin, OnlyTheFirstRuntimeCounts) {
  const auto pool = MakePool();
  pool->PinWith(device_);
  const auto other = std::make_shared<HostDevice>();
  pool->PinWith(other);
  EXPECT_TRUE(pool->Acquire()->is_pinned());
  EXPECT_EQ(other->counters().pins, 0U);
}

TEST_F(StagingPoolPin, ManyThreadsAreLentPinnedMemory) {
  const auto pool = MakePool();
  pool->PinWith(device_);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(pool->Acquire()->is_pinned());
        EXPECT_TRUE(pool->Reserve(4).ok());
        EXPECT_TRUE(pool->AcquireScratch(kPinBuffer)->is_pinned());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool->pinned_bytes(), device_->counters().pinned_bytes);
}

TEST_F(StagingPoolPin, PinnedMemoryIsNotInheritedAndAChildUnpinsNothing) {
  auto pool = MakePool();
  pool->PinWith(device_);
  StagingBuffer buffer = pool->Acquire().value();
  const MutableByteSpan bytes = buffer.bytes();
  EXPECT_TRUE(HoldsInChild([&] {
    std::vector<unsigned char> present(kPinBuffer / 4096);
    const bool absent = mincore(bytes.data(), bytes.size(), present.data()) != 0;
    buffer = StagingBuffer();
    pool.reset();
    return absent && device_->counters().pinned_bytes == kPinBuffer;
  }));
}

}  // namespace
}  // namespace sealpoint::internal::device
