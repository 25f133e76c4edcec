// SPDX-License-Identifier: Apache-2.0
//
// Large host memory that a save writes from where it lies.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/failing_storage.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kLargeSize = 5 * kMiB + 777;

TEST(BorrowedMemorySaveTest, NeedsNoStagingMemory) {
  const auto storage = MemoryStorage();
  const Bytes bytes = NoiseBytes(7, kLargeSize);
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("w", kLargeSize)}).value();
  const auto comm = SelfCommunicator();
  const auto engine = Engine::Create({.storage = storage}).value();
  const auto saver = Saver::Create(*engine, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind("w", MemoryView::Host(bytes)).ok());
  ASSERT_TRUE(saver->Save(SaveTarget::Directory("saved"), {.step = 1}, sources).ok());
  EXPECT_EQ(LoadWhole(*OpenFrom(storage, "saved"), "w"), bytes);
  EXPECT_LE(engine->stats().mapped_bytes, engine->options().staging_buffer_size_bytes);
}

// Chunks lie across buffers, and several threads copy them.
TEST(BorrowedMemorySaveTest, IsCopiedBySeveralThreadsForASaveInTheBackground) {
  const Bytes before = NoiseBytes(9, kLargeSize);
  for (const int threads : {1, 2, 5}) {
    SCOPED_TRACE(threads);
    const auto storage = MemoryStorage();
    const auto engine = Engine::Create({.memory_budget_bytes = 16 * kMiB,
                                        .staging_buffer_size_bytes = 48 * kKiB,
                                        .snapshot_thread_count = threads,
                                        .storage = storage})
                            .value();
    Bytes bytes = before;
    Declaration declaration;
    for (const std::string name : {"v", "w"}) {
      TensorSpec tensor = ByteTensor(name, kLargeSize);
      tensor.chunk_size_bytes = 64 * kKiB;
      declaration.Add({.tensor = tensor}).value();
    }
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*engine, *comm).value();
    Sources sources(declaration);
    ASSERT_TRUE(sources.Bind("v", MemoryView::Host(bytes)).ok());
    ASSERT_TRUE(sources.Bind("w", MemoryView::Host(bytes)).ok());
    const auto pending = saver->SaveAsync(SaveTarget::Directory("saved"), {.step = 1}, sources);
    ASSERT_TRUE(pending.ok());
    std::ranges::fill(bytes, std::byte{0});
    ASSERT_TRUE((*pending)->Wait().ok());
    EXPECT_EQ(FindDamage(storage, "saved"), "");
    EXPECT_EQ(LoadWhole(*OpenFrom(storage, "saved"), "v"), before);
    EXPECT_EQ(LoadWhole(*OpenFrom(storage, "saved"), "w"), before);
  }
}

// The training may go on: what is stored is what the memory was.
TEST(BorrowedMemorySaveTest, OfASaveMayChangeWhenItReturns) {
  const auto storage = std::make_shared<FailingStorage>(MemoryStorage());
  storage->SetHook([own = std::this_thread::get_id()](StorageOp op, std::string_view) {
    if (op != StorageOp::kWrite || std::this_thread::get_id() == own) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  });
  const auto engine = SmallEngine(storage, 8, 256 * kKiB);
  Bytes bytes = NoiseBytes(8, kLargeSize);
  const Bytes before = bytes;
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("w", kLargeSize)}).value();
  const auto comm = SelfCommunicator();
  const auto saver = Saver::Create(*engine, *comm).value();
  Sources sources(declaration);
  ASSERT_TRUE(sources.Bind("w", MemoryView::Host(bytes)).ok());
  // The budget is smaller than the state, which is therefore written while it is copied.
  const auto pending = saver->SaveAsync(SaveTarget::Directory("saved"), {.step = 1}, sources);
  ASSERT_TRUE(pending.ok());
  std::ranges::fill(bytes, std::byte{0});
  ASSERT_TRUE((*pending)->Wait().ok());
  EXPECT_EQ(LoadWhole(*OpenFrom(storage, "saved"), "w"), before);
}

}  // namespace
}  // namespace sealpoint::testing
