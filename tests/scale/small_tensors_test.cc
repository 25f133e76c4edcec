// SPDX-License-Identifier: Apache-2.0
//
// What a tensor costs in memory where each has few bytes: in a save, a plan and a load.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/communicator.h"
#include "sealpoint/saver.h"
#include "tests/support/process/allocation_watch.h"
#include "tests/support/process/results.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint::testing {
namespace {

// A little more than a power of two, so that lists that were doubled on the way have much to spare.
constexpr std::uint64_t kTensors = (1 << 15) + (1 << 13);
constexpr std::uint64_t kTensorBytes = 64;

class SmallTensorsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CanWatchAllocations()) GTEST_SKIP() << "a sanitizer has its own allocator";
  }

  static std::string NameOf(std::uint64_t i) {
    return "model.layers." + std::to_string(i / 16) + ".block." + std::to_string(i % 16);
  }
  std::byte* DataOf(std::uint64_t i) { return memory_.data() + i * kTensorBytes; }

  Declaration Declare() {
    Declaration held;
    for (std::uint64_t i = 0; i < kTensors; ++i) {
      held.Add({.tensor = {.name = NameOf(i), .dtype = DType::kF32, .shape = {16}}}).value();
    }
    return held;
  }
  Sources Bind(const Declaration& held) {
    Sources sources(held);
    for (std::uint64_t i = 0; i < kTensors; ++i) {
      EXPECT_TRUE(sources.Bind(i, MemoryView::Host(DataOf(i), kTensorBytes)).ok());
    }
    return sources;
  }
  void Save(const Sources& sources) {
    const auto engine = Engine::Create({.memory_budget_bytes = kEngineBytes}).value();
    const auto comm = SelfCommunicator();
    const auto saver = Saver::Create(*engine, *comm).value();
    const auto saved = saver->Save(SaveTarget::Directory(path_), {.step = 1}, sources);
    ASSERT_TRUE(saved.ok()) << saved.error().ToString();
  }
  ReadRequest Request() {
    ReadRequest request;
    request.items.reserve(kTensors);
    for (std::uint64_t i = 0; i < kTensors; ++i) {
      request.Add(NameOf(i), MutableMemoryView::Host(DataOf(i), kTensorBytes));
    }
    return request;
  }

  // The peak of `work`, per tensor.
  template <typename Work>
  static std::uint64_t BytesPerTensor(const Work& work) {
    BeginAllocationWatch();
    work();
    return EndAllocationWatch().live_bytes / kTensors;
  }

  static constexpr std::uint64_t kEngineBytes = 16 * kMiB;

  TempDir directory_;
  const std::string path_ = directory_ / "checkpoint";
  std::vector<std::byte> memory_ = std::vector<std::byte>(kTensors * kTensorBytes);
};

TEST_F(SmallTensorsTest, TakeLittleMemory) {
  std::unique_ptr<Declaration> held;
  std::unique_ptr<Sources> sources;
  const std::uint64_t declared = BytesPerTensor([&] {
    held = std::make_unique<Declaration>(Declare());
    sources = std::make_unique<Sources>(Bind(*held));
  });
  const std::uint64_t saved = BytesPerTensor([&] { Save(*sources); }) - kEngineBytes / kTensors;
  const std::uint64_t opened = BytesPerTensor([&] { EXPECT_TRUE(Checkpoint::Open(path_).ok()); });
  const auto checkpoint = Checkpoint::Open(path_).value();
  const ReadRequest request = Request();
  const std::uint64_t planned =
      BytesPerTensor([&] { EXPECT_TRUE(checkpoint->Plan(request).ok()); });
  RecordRun({.row = "small-tensors",
             .title = "Peak memory per tensor of 64 bytes",
             .command = "ctest --test-dir build/dev -R scale.memory",
             .counts = {{"declared and bound", declared},
                        {"saved", saved},
                        {"opened", opened},
                        {"planned", planned}},
             .exact = false});
  EXPECT_LE(declared, 370u);
  EXPECT_LE(saved, 380u);
  EXPECT_LE(opened, 100u);
  EXPECT_LE(planned, 310u);
}

}  // namespace
}  // namespace sealpoint::testing
