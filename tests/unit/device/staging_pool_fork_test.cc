// SPDX-License-Identifier: Apache-2.0
// What a forked child sees of the pool. Each child reports by its exit status.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <memory>

#include "lib/device/staging_pool.h"
#include "tests/support/process/in_child.h"

namespace sealpoint::internal::device {
namespace {

using testing::HoldsInChild;

constexpr std::uint64_t kBufferBytes = 64 * kKiB;

bool IsMapped(MutableByteSpan bytes) {
  std::array<unsigned char, kBufferBytes / 4096> present{};
  return mincore(bytes.data(), bytes.size(), present.data()) == 0 || errno != ENOMEM;
}

TEST(StagingPoolFork, TheChildDoesNotInheritBuffersOrScratch) {
  const auto pool = StagingPool::Create(2 * kBufferBytes, kBufferBytes).value();
  const StagingBuffer buffer = pool->Acquire().value();
  const StagingBuffer scratch = pool->AcquireScratch(kBufferBytes).value();
  EXPECT_TRUE(IsMapped(buffer.bytes()) && IsMapped(scratch.bytes()));
  EXPECT_TRUE(HoldsInChild([&] { return !IsMapped(buffer.bytes()); }));
  EXPECT_TRUE(HoldsInChild([&] { return !IsMapped(scratch.bytes()); }));
}

TEST(StagingPoolFork, TheChildIsRefusedBuffersAndScratch) {
  const auto pool = StagingPool::Create(2 * kBufferBytes, kBufferBytes).value();
  static_cast<void>(pool->Acquire().value());
  EXPECT_TRUE(
      HoldsInChild([&] { return pool->Acquire().status().code() == Code::kInvalidArgument; }));
  EXPECT_TRUE(
      HoldsInChild([&] { return pool->TryAcquire().status().code() == Code::kInvalidArgument; }));
  EXPECT_TRUE(HoldsInChild(
      [&] { return pool->AcquireScratch(1).status().code() == Code::kInvalidArgument; }));
  EXPECT_TRUE(HoldsInChild([&] { return pool->Reserve(2).code() == Code::kInvalidArgument; }));
}

TEST(StagingPoolFork, TheChildMayDestroyABufferAndItsParentStillHasIt) {
  const auto pool = StagingPool::Create(2 * kBufferBytes, kBufferBytes).value();
  StagingBuffer buffer = pool->Acquire().value();
  buffer.bytes().front() = std::byte{42};
  EXPECT_TRUE(HoldsInChild([&] {
    buffer = StagingBuffer();
    return true;
  }));
  EXPECT_EQ(buffer.bytes().front(), std::byte{42});
}

// Maps other memory of the child where the pool's memory was in the parent.
bool TakePlaceOf(MutableByteSpan bytes) {
  return mmap(bytes.data(), bytes.size(), PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == bytes.data();
}

TEST(StagingPoolFork, TheChildsPoolUnmapsNothing) {
  auto pool = StagingPool::Create(2 * kBufferBytes, kBufferBytes).value();
  const MutableByteSpan bytes = pool->Acquire()->bytes();
  EXPECT_TRUE(HoldsInChild([&] {
    const bool taken = TakePlaceOf(bytes);
    pool.reset();
    return taken && IsMapped(bytes);
  }));
}

// Scratch beyond the budget is unmapped when it comes back, but not by a child.
TEST(StagingPoolFork, TheChildsScratchUnmapsNothing) {
  const auto pool = StagingPool::Create(0, 4096).value();
  StagingBuffer scratch = pool->AcquireScratch(kBufferBytes).value();
  EXPECT_TRUE(HoldsInChild([&] {
    const MutableByteSpan bytes = scratch.bytes();
    const bool taken = TakePlaceOf(bytes);
    scratch = StagingBuffer();
    return taken && IsMapped(bytes);
  }));
}

}  // namespace
}  // namespace sealpoint::internal::device
