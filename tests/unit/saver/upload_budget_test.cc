// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/object_store.h"
#include "sealpoint/saver.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/state/saved_state.h"
#include "tests/support/storage/memory_object_store.h"

// Uploads in the memory of an engine: three blobs at once, from one thread, with every budget. It
// is enough, or an error names what would be.

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kBuffer = 16 * kKiB;
constexpr std::uint64_t kSize = 300 * kKiB;  // of each blob: five parts
// Three parts of four buffers, and a buffer for each blob and one more.
constexpr std::uint64_t kNeeded = 3 * 4 + 3 + 1;

struct World {
  World(std::uint64_t budget, int io_threads) {
    store->sends_behind = true;
    storage = ObjectStorage(store).value();
    engine = Engine::Create({.memory_budget_bytes = budget,
                             .staging_buffer_size_bytes = kBuffer,
                             .io_thread_count = io_threads,
                             .storage = storage})
                 .value();
    for (const char* group : {"a", "b", "c"}) {
      TensorSpec tensor = ByteTensor(group, kSize);
      tensor.group = group;
      declaration.Add({.tensor = tensor}).value();
      contents.push_back(NoiseBytes(static_cast<unsigned>(contents.size()), kSize));
    }
  }
  Sources MakeSources() const {
    Sources sources(declaration);
    for (std::size_t i = 0; i < contents.size(); ++i) {
      EXPECT_TRUE(sources.Bind(i, MemoryView::Host(std::span(contents[i]))).ok());
    }
    return sources;
  }
  void ExpectSaved() const {
    const auto saved = OpenFrom(storage, "mem://bucket/run");
    EXPECT_TRUE(LoadWhole(*saved, "a") == contents[0] && LoadWhole(*saved, "c") == contents[2]);
  }

  std::shared_ptr<MemoryObjectStore> store = std::make_shared<MemoryObjectStore>();
  std::shared_ptr<Storage> storage;
  std::unique_ptr<Engine> engine;
  Declaration declaration;
  std::vector<Bytes> contents;
};

TEST(UploadBudgetTest, IsEnoughOrNamesWhatWouldBe) {
  const auto comm = SelfCommunicator();
  for (const int io_threads : {1, 2, 4}) {
    for (std::uint64_t buffers = 2; buffers < 60; buffers += buffers < 24 ? 1 : 9) {
      SCOPED_TRACE(std::to_string(buffers) + " buffers, threads " + std::to_string(io_threads));
      const World world(buffers * kBuffer, io_threads);
      const auto saver = Saver::Create(*world.engine, *comm).value();
      const auto saved =
          saver->Save(SaveTarget::Directory("mem://bucket/run"), {.step = 1}, world.MakeSources());
      EXPECT_LE(world.store->held_bytes_max(), buffers * kBuffer);
      EXPECT_EQ(world.store->unfinished_uploads(), 0U);
      ASSERT_EQ(saved.ok(), buffers >= kNeeded) << saved.status().ToString();
      if (saved.ok()) {
        world.ExpectSaved();
      } else {
        EXPECT_EQ(saved.error().code(), Code::kInvalidArgument);
        EXPECT_NE(saved.error().message().find("expected at least"), std::string::npos)
            << saved.error().ToString();
      }
    }
  }
}

// From 80 buffers on, if not before, the state is held at once, and its parts must find room beside
// it.
TEST(UploadBudgetTest, HasRoomForPartsBesideWhatIsHeld) {
  const auto comm = SelfCommunicator();
  for (std::uint64_t buffers = kNeeded; buffers < 100; buffers += 4) {
    SCOPED_TRACE(std::to_string(buffers) + " buffers");
    const World world(buffers * kBuffer, 2);
    const auto saver = Saver::Create(*world.engine, *comm).value();
    auto pending = saver->SaveAsync(SaveTarget::Directory("mem://bucket/run"), {.step = 1},
                                    world.MakeSources());
    ASSERT_TRUE(pending.ok()) << pending.error().ToString();
    const auto saved = (*pending)->Wait();
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
    world.ExpectSaved();
    // Three streams map at most 16 each.
    if (buffers >= 80) EXPECT_GE(world.engine->stats().mapping_count, 3 * kSize / kBuffer);
    EXPECT_LE(world.engine->stats().mapped_bytes, buffers * kBuffer);
  }
}

}  // namespace
}  // namespace sealpoint::testing
