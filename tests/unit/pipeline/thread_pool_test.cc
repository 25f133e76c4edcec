// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/internal_access.h"
#include "lib/pipeline/engine_parts.h"
#include "sealpoint/engine.h"

namespace sealpoint::internal::pipeline {
namespace {

TEST(ThreadPool, BeginsJobsInTheOrderOfSubmission) {
  std::vector<int> order;
  {
    ThreadPool pool(1);
    for (int i = 0; i < 100; ++i) pool.Submit([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(ThreadPool, RunsAsManyJobsAtATimeAsItHasThreads) {
  std::barrier together(3);
  std::atomic<int> met{0};
  {
    ThreadPool pool(3);
    EXPECT_EQ(pool.thread_count(), 3);
    for (int i = 0; i < 3; ++i) {
      pool.Submit([&] {
        together.arrive_and_wait();  // would wait for ever
        ++met;
      });
    }
  }
  EXPECT_EQ(met, 3);
}

TEST(ThreadPool, DestroysAJobRightAfterItsRun) {
  ThreadPool pool(1);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = held;
  pool.Submit([held = std::move(held)] {});
  std::atomic<bool> gone{false};
  std::atomic<bool> asked{false};
  pool.Submit([&] {
    gone = watched.expired();
    asked = true;
  });
  while (!asked) std::this_thread::yield();
  EXPECT_TRUE(gone);
}

TEST(ThreadPool, DestroysAJobWithoutItsLock) {
  struct SubmitsWhenDestroyed {
    ThreadPool* pool;
    std::atomic<bool>* ran;
    ~SubmitsWhenDestroyed() {
      pool->Submit([ran = ran] { *ran = true; });
    }
  };
  std::atomic<bool> ran{false};
  ThreadPool pool(1);
  auto held = std::make_shared<SubmitsWhenDestroyed>(&pool, &ran);
  pool.Submit([held = std::move(held)] {});
  while (!ran) std::this_thread::yield();  // would wait for ever
}

TEST(ThreadPool, RunsNoJobOnTheSubmittingThread) {
  std::thread::id runner;
  {
    ThreadPool pool(1);
    pool.Submit([&] { runner = std::this_thread::get_id(); });
  }
  EXPECT_NE(runner, std::this_thread::get_id());
  EXPECT_NE(runner, std::thread::id());
}

TEST(ParallelFor, VisitsEveryIndexOnceWithWorkersInRange) {
  std::vector<std::atomic<int>> visits(1000);
  std::atomic<bool> out_of_range{false};
  const Status status = ParallelFor(3, visits.size(), [&](int worker, std::size_t index) {
    if (worker < 0 || worker >= 3) out_of_range = true;
    ++visits[index];
    return Status();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(out_of_range);
  for (const auto& count : visits) EXPECT_EQ(count, 1);
}

TEST(ParallelFor, NeverRunsOneWorkerTwiceAtATime) {
  std::vector<std::mutex> busy(4);
  std::atomic<bool> overlap{false};
  const Status status = ParallelFor(4, 400, [&](int worker, std::size_t) {
    std::unique_lock lock(busy[static_cast<std::size_t>(worker)], std::try_to_lock);
    if (!lock.owns_lock()) overlap = true;
    std::this_thread::yield();
    return Status();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(overlap);
}

TEST(ParallelFor, RunsOnTheCallingThreadWithOneWorker) {
  bool elsewhere = false;
  const Status status =
      ParallelFor(1, 5, [&, caller = std::this_thread::get_id()](int, std::size_t) {
        if (std::this_thread::get_id() != caller) elsewhere = true;
        return Status();
      });
  EXPECT_TRUE(status.ok());
  EXPECT_FALSE(elsewhere);
}

TEST(ParallelFor, DoesNothingForNoIndex) {
  EXPECT_TRUE(
      ParallelFor(4, 0, [](int, std::size_t) { return Status(Code::kInternal, "called"); }).ok());
}

TEST(ParallelFor, BeginsNoIndexAfterAFailure) {
  std::vector<std::size_t> visited;
  const Status status = ParallelFor(1, 10, [&](int, std::size_t index) {
    visited.push_back(index);
    return index == 3 ? Status(Code::kIo, "third") : Status();
  });
  EXPECT_EQ(status, Status(Code::kIo, "third"));
  EXPECT_EQ(visited, (std::vector<std::size_t>{0, 1, 2, 3}));
}

// The second index fails first; the first only after it knows of that.
TEST(ParallelFor, ReturnsTheFailureWithTheSmallestIndex) {
  std::atomic<bool> second_failing{false};
  const Status status = ParallelFor(2, 2, [&](int, std::size_t index) {
    if (index == 1) {
      second_failing = true;
    } else {
      while (!second_failing) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return Status(Code::kIo, std::to_string(index));
  });
  EXPECT_EQ(status, Status(Code::kIo, "0"));
}

TEST(Engine, ChoosesItsThreads) {
  EXPECT_EQ(Engine::Create({.io_thread_count = -1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(Engine::Create({.snapshot_thread_count = -1}).status().code(), Code::kInvalidArgument);
  const auto engine = Engine::Create().value();
  const EngineOptions& chosen = InternalAccess::PartsOf(*engine).options;
  EXPECT_EQ(std::pair(chosen.io_thread_count, chosen.snapshot_thread_count), std::pair(1, 2));
}

// One buffer is left to a save that streams, and one to spare.
TEST(Engine, HoldsAllBuffersButTwo) {
  const auto engine = Engine::Create({.memory_budget_bytes = 64 * kMiB}).value();
  EngineParts& parts = InternalAccess::PartsOf(*engine);
  const std::uint64_t count = parts.pool->buffer_count();
  ASSERT_GT(count, 2U);
  EXPECT_FALSE(parts.TryReserve(count - 1));
  EXPECT_TRUE(parts.TryReserve(count - 2));
  EXPECT_FALSE(parts.TryReserve(1)) << "the others are held";
  parts.ConvertReservation(count - 2, 0);
  EXPECT_TRUE(parts.TryReserve(1));
  parts.ConvertReservation(1, 0);
}

// There are 32 buffers: ten are for the parts of two blobs, and staging keeps 2 + 6 of the others.
TEST(Engine, CountsPartsOfUploads) {
  constexpr std::uint64_t kPart = 5 * kMiB;
  const auto engine = Engine::Create({.memory_budget_bytes = 32 * kMiB,
                                      .staging_buffer_size_bytes = 1 * kMiB,
                                      .io_thread_count = 2})
                          .value();
  EngineParts& parts = InternalAccess::PartsOf(*engine);
  const Status error = parts.TakeBlobPermit(31 * kMiB, nullptr);
  EXPECT_EQ(error.code(), Code::kInvalidArgument);
  EXPECT_NE(error.message().find("33554432, expected at least 34603008 for 1 blobs"),
            std::string::npos)
      << error.ToString();
  ASSERT_TRUE(parts.TakeBlobPermit(kPart, nullptr).ok());
  ASSERT_TRUE(parts.TakeBlobPermit(kPart, nullptr).ok());
  EXPECT_TRUE(parts.TryTake(kPart));
  EXPECT_TRUE(parts.TryTake(kPart));
  EXPECT_FALSE(parts.TryTake(kPart));
  EXPECT_TRUE(parts.TryReserve(18)) << "what is taken comes back by itself";
  EXPECT_FALSE(parts.TryReserve(1));
  std::vector<device::StagingBuffer> lent;
  for (int i = 0; i < 12; ++i) lent.push_back(parts.pool->TryAcquire().value());
  EXPECT_FALSE(lent.back().empty());
  EXPECT_TRUE(parts.pool->TryAcquire()->empty());
  lent.clear();
  parts.Give(kPart);
  parts.Give(kPart);
  parts.ConvertReservation(18, 1, kPart);
  for (int i = 0; i < 3; ++i) parts.ReturnBlobPermit(kPart);
  EXPECT_TRUE(parts.TryReserve(30)) << "all is back";
  parts.ConvertReservation(30, 0);
}

}  // namespace
}  // namespace sealpoint::internal::pipeline
