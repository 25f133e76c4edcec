// SPDX-License-Identifier: Apache-2.0
#include "lib/device/staging_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "lib/device/host_mapping.h"

namespace sealpoint::internal::device {
namespace {

constexpr std::uint64_t kBuffer = 64 * kKiB;

std::unique_ptr<StagingPool> MakePool(std::uint64_t budget = 4 * kBuffer,
                                      std::uint64_t buffer = kBuffer) {
  return StagingPool::Create(budget, buffer).value();
}

// True where `take` is still waiting after a moment in which it could have finished.
template <typename T>
bool IsWaiting(const std::future<T>& take) {
  return take.wait_for(std::chrono::milliseconds(50)) == std::future_status::timeout;
}

bool AllPagesPresent(MutableByteSpan bytes) {
  std::vector<unsigned char> present(bytes.size() / SystemPageBytes());
  EXPECT_EQ(mincore(bytes.data(), bytes.size(), present.data()), 0);
  return std::all_of(present.begin(), present.end(), [](unsigned char p) { return (p & 1) != 0; });
}

TEST(StagingPoolCreate, RefusesABufferSizeThatIsNotWholePages) {
  for (const std::uint64_t size : {0U, 1U, 4095U, 4097U}) {
    EXPECT_EQ(StagingPool::Create(kMiB, size).status().code(), Code::kInvalidArgument) << size;
  }
}

TEST(StagingPoolCreate, RefusesABufferSizeOfWhichTwoDoNotFitTheAddressSpace) {
  EXPECT_EQ(StagingPool::Create(0, std::uint64_t{1} << 63).status().code(), Code::kInvalidArgument);
}

TEST(StagingPoolCreate, MapsNothing) {
  const auto pool = MakePool();
  EXPECT_EQ(pool->mapping_count(), 0U);
  EXPECT_EQ(pool->mapped_bytes(), 0U);
}

TEST(StagingPool, LendsAlignedBuffersOfTheAskedSize) {
  const auto pool = MakePool();
  const auto buffer = pool->Acquire();
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(buffer->bytes().size(), kBuffer);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->bytes().data()) % 4096, 0U);
}

TEST(StagingPool, AlignsLargeBuffersToHugePages) {
  const auto pool = MakePool(8 * kMiB, 4 * kMiB);
  const auto buffer = pool->Acquire();
  ASSERT_TRUE(buffer.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer->bytes().data()) % (2 * kMiB), 0U);
}

TEST(StagingPool, TouchesEveryPageBeforeItLends) {
  const auto pool = MakePool(8 * kMiB, 4 * kMiB);
  EXPECT_TRUE(AllPagesPresent(pool->Acquire()->bytes()));
  EXPECT_TRUE(AllPagesPresent(pool->AcquireScratch(100000)->bytes()));
}

TEST(StagingPool, LendsTwoBuffersWhateverTheBudget) {
  const auto pool = MakePool(0);
  const auto first = pool->Acquire();
  const auto second = pool->Acquire();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->bytes().data(), second->bytes().data());
}

TEST(StagingPool, WaitsWhenTheBudgetIsLentAndGoesOnWhenOneReturns) {
  const auto pool = MakePool(3 * kBuffer + 1);
  std::vector<StagingBuffer> held;
  for (int i = 0; i < 3; ++i) held.push_back(pool->Acquire().value());
  auto fourth = std::async(std::launch::async, [&] { return pool->Acquire().value(); });
  EXPECT_TRUE(IsWaiting(fourth));
  const std::byte* const returned = held.back().bytes().data();
  held.pop_back();
  EXPECT_EQ(fourth.get().bytes().data(), returned);
}

TEST(StagingPool, MapsNothingTheSecondTime) {
  const auto pool = MakePool();
  for (int round = 0; round < 3; ++round) {
    std::vector<StagingBuffer> held;
    for (int i = 0; i < 4; ++i) held.push_back(pool->Acquire().value());
    const auto scratch = pool->AcquireScratch(kBuffer);
    EXPECT_EQ(pool->mapping_count(), 5U);
    EXPECT_EQ(pool->mapped_bytes(), 5 * kBuffer);
  }
}

TEST(StagingPool, ReportsMemoryThatCannotBeHadAsIo) {
  const auto pool = MakePool(0, std::uint64_t{1} << 50);
  EXPECT_EQ(pool->Acquire().status().code(), Code::kIo);
  EXPECT_EQ(pool->Acquire().status().code(), Code::kIo);
  EXPECT_EQ(pool->Acquire().status().code(), Code::kIo) << "a failure used up a buffer";
  EXPECT_EQ(pool->mapped_bytes(), 0U);
}

TEST(StagingPool, ServesManyThreads) {
  const auto pool = MakePool(2 * kBuffer);
  std::atomic<int> lent{0};
  std::atomic<bool> too_many{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        const StagingBuffer buffer = pool->Acquire().value();
        if (lent.fetch_add(1) >= 2) too_many = true;
        buffer.bytes().front() = static_cast<std::byte>(t);
        lent.fetch_sub(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(too_many);
  EXPECT_LE(pool->mapping_count(), 2U);
}

TEST(StagingBuffer, IsEmptyAfterAMove) {
  const auto pool = MakePool();
  StagingBuffer first = pool->Acquire().value();
  const std::byte* const data = first.bytes().data();
  StagingBuffer second = std::move(first);
  EXPECT_TRUE(first.empty());  // NOLINT: what is asked here
  EXPECT_EQ(second.bytes().data(), data);
}

TEST(StagingBuffer, GivesBackWhatItHeldWhenAssigned) {
  const auto pool = MakePool(2 * kBuffer);
  StagingBuffer first = pool->Acquire().value();
  StagingBuffer second = pool->Acquire().value();
  first = std::move(second);
  EXPECT_TRUE(pool->Acquire().ok());  // would wait for ever
}

TEST(StagingScratch, GivesAtLeastWhatWasAsked) {
  const auto pool = MakePool();
  for (const std::uint64_t size : {0U, 1U, 4096U, 4097U, 100000U}) {
    const StagingBuffer scratch = pool->AcquireScratch(size).value();
    EXPECT_GE(scratch.bytes().size(), std::max<std::uint64_t>(size, 1));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(scratch.bytes().data()) % 4096, 0U);
  }
}

TEST(StagingScratch, HasABudgetOfItsOwn) {
  const auto pool = MakePool(2 * kBuffer);
  const StagingBuffer first = pool->Acquire().value();
  const StagingBuffer second = pool->Acquire().value();
  EXPECT_TRUE(pool->AcquireScratch(kBuffer).ok());  // would wait for ever
}

TEST(StagingScratch, ReusesAPieceOfTheSameClass) {
  const auto pool = MakePool();
  static_cast<void>(pool->AcquireScratch(5000).value());
  static_cast<void>(pool->AcquireScratch(8192).value());
  EXPECT_EQ(pool->mapping_count(), 1U);
}

TEST(StagingScratch, ReusesAPieceOfTheWholeBudget) {
  const auto pool = MakePool(2 * kBuffer);
  static_cast<void>(pool->AcquireScratch(2 * kBuffer).value());
  static_cast<void>(pool->AcquireScratch(2 * kBuffer).value());
  EXPECT_EQ(pool->mapping_count(), 1U);
}

TEST(StagingScratch, WaitsWhenTheBudgetIsLentAndGoesOnWhenEnoughReturned) {
  const auto pool = MakePool(2 * kBuffer);
  auto first = std::make_unique<StagingBuffer>(pool->AcquireScratch(kBuffer).value());
  const StagingBuffer second = pool->AcquireScratch(kBuffer).value();
  auto third = std::async(std::launch::async, [&] { return pool->AcquireScratch(1).value(); });
  EXPECT_TRUE(IsWaiting(third));
  first.reset();
  EXPECT_EQ(third.get().bytes().size(), SystemPageBytes());
}

TEST(StagingScratch, UnmapsOtherClassesToStayInTheBudget) {
  const auto pool = MakePool(2 * kBuffer);
  static_cast<void>(pool->AcquireScratch(2 * kBuffer).value());
  static_cast<void>(pool->AcquireScratch(kBuffer).value());
  EXPECT_EQ(pool->mapping_count(), 2U);
  EXPECT_EQ(pool->mapped_bytes(), kBuffer);
}

TEST(StagingScratch, ServesMoreThanTheBudgetAloneAndGivesItBack) {
  const auto pool = MakePool(2 * kBuffer);
  auto large = std::make_unique<StagingBuffer>(pool->AcquireScratch(5 * kBuffer + 1).value());
  EXPECT_EQ(large->bytes().size(), 5 * kBuffer + SystemPageBytes())
      << "rounded to pages, not to a class";
  auto other = std::async(std::launch::async, [&] { return pool->AcquireScratch(1).value(); });
  EXPECT_TRUE(IsWaiting(other));
  large.reset();
  static_cast<void>(other.get());
  EXPECT_EQ(pool->mapped_bytes(), SystemPageBytes());
}

TEST(StagingScratch, UnmapsWhatIsMoreThanTheBudget) {
  const auto pool = MakePool(2 * kBuffer);
  const MutableByteSpan bytes = pool->AcquireScratch(3 * kBuffer)->bytes();
  std::vector<unsigned char> present(bytes.size() / 4096);
  EXPECT_NE(mincore(bytes.data(), bytes.size(), present.data()), 0);
}

// Three buffers: between the classes of two and of four.
TEST(StagingScratch, LendsNoPieceToWhoAsksForMoreThanItHas) {
  const auto pool = MakePool(3 * kBuffer);
  EXPECT_GE(pool->AcquireScratch(2 * kBuffer + 1)->bytes().size(), 2 * kBuffer + 1);
  EXPECT_GE(pool->AcquireScratch(3 * kBuffer)->bytes().size(), 3 * kBuffer);
  EXPECT_EQ(pool->mapped_bytes(), 0U);
}

TEST(StagingScratch, WaitsUntilItIsAloneForMoreThanTheBudget) {
  const auto pool = MakePool(2 * kBuffer);
  auto small = std::make_unique<StagingBuffer>(pool->AcquireScratch(1).value());
  auto large =
      std::async(std::launch::async, [&] { return pool->AcquireScratch(3 * kBuffer).value(); });
  EXPECT_TRUE(IsWaiting(large));
  small.reset();
  EXPECT_EQ(large.get().bytes().size(), 3 * kBuffer);
}

TEST(StagingScratch, ReportsMemoryThatCannotBeHadAsIo) {
  const auto pool = MakePool();
  EXPECT_EQ(pool->AcquireScratch(std::uint64_t{1} << 60).status().code(), Code::kIo);
  EXPECT_EQ(pool->AcquireScratch(~std::uint64_t{0}).status().code(), Code::kIo);
  const StagingBuffer first = pool->AcquireScratch(2 * kBuffer).value();
  EXPECT_TRUE(pool->AcquireScratch(2 * kBuffer).ok()) << "a failure used up the budget";
}

TEST(StagingPoolDeathTest, FindsABufferThatDidNotComeBack) {
  EXPECT_DEATH(
      {
        auto pool = MakePool();
        const StagingBuffer buffer = pool->Acquire().value();
        pool.reset();
      },
      "buffers_free.size");
}

TEST(StagingPool, ScratchBeyondTheBudgetIsGivenBackAtOnce) {
  const auto pool = StagingPool::Create(kMiB, 64 * kKiB).value();
  const std::uint64_t before = pool->mapped_bytes();
  static_cast<void>(pool->AcquireScratch(64 * kMiB).value());
  EXPECT_EQ(pool->mapped_bytes(), before);
}

TEST(HostMappingDeathTest, RefusesMoreThanHalfOfTheAddresses) {
  EXPECT_DEATH(static_cast<void>(MapHostMemory((std::uint64_t{1} << 63) + kPageBytes)), "1. << 63");
}

TEST(HostMapping, MoreMemoryThanThereIsIsAnError) {
  const Status status = MapHostMemory(std::uint64_t{1} << 60).status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_NE(status.message().find("mmap"), std::string::npos) << status.ToString();
}

TEST(StagingPool, WithdrawsFreeBuffersOnly) {
  const auto pool = MakePool();
  {
    const auto one = pool->Acquire();
    const auto two = pool->Acquire();
  }
  ASSERT_EQ(pool->mapped_bytes(), 2 * kBuffer);
  ASSERT_TRUE(pool->TryWithdraw(3));
  EXPECT_EQ(pool->mapped_bytes(), kBuffer) << "unmapped, for others";
  ASSERT_TRUE(pool->Reserve(4).ok());
  EXPECT_EQ(pool->mapped_bytes(), kBuffer);
  auto last = pool->Acquire();
  EXPECT_TRUE(pool->TryAcquire()->empty());
  EXPECT_FALSE(pool->TryWithdraw(1));
  auto aside = std::async(std::launch::async, [&] {
    pool->Withdraw(1);
    return true;
  });
  EXPECT_TRUE(IsWaiting(aside));
  *last = StagingBuffer();
  EXPECT_TRUE(aside.get());
  EXPECT_EQ(pool->mapped_bytes(), 0U);
  auto waiting = std::async(std::launch::async, [&] { return pool->Acquire().ok(); });
  EXPECT_TRUE(IsWaiting(waiting));
  pool->ReturnWithdrawn(4);
  EXPECT_TRUE(waiting.get());
}

}  // namespace
}  // namespace sealpoint::internal::device
