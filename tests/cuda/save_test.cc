// SPDX-License-Identifier: Apache-2.0
// A training whose state lies in device memory, where kernels change it: it is saved from there,
// and goes on from what was loaded there, with the bits of one that was never interrupted.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/engine.h"
#include "sealpoint/placement.h"
#include "sealpoint/saver.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/cuda/step_image.h"
#include "tests/cuda/step_job.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kRows = 1500;
constexpr std::uint64_t kColumns = 1000;  // 5.7 MiB of f32: a whole chunk and a part of one
constexpr std::uint64_t kCount = kRows * kColumns;
const Shape kShape = {kRows, kColumns};

class CudaSaveTest : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    if (IsSkipped()) return;
    const internal::cuda::CurrentContext current(driver_, context_);
    internal::cuda::Module* module = nullptr;  // unloaded with the context
    ASSERT_EQ(driver_.module_load_data(&module, StepImage().data()), 0);
    ASSERT_EQ(driver_.module_get_function(&kernel_, module, "sealpoint_test_step"), 0);
    declaration_.Add({.tensor = {.name = "w", .dtype = DType::kF32, .shape = kShape}}).value();
  }

  // Queues the steps (begin, end], and waits for nothing.
  void Train(const Memory& memory, std::uint64_t begin, std::uint64_t end) {
    const internal::cuda::CurrentContext current(driver_, context_);
    for (std::uint64_t step = begin + 1; step <= end; ++step) {
      StepJob job{reinterpret_cast<float*>(memory.address()), kCount, step};
      std::array<void*, 1> parameters = {&job};  // copied by the call
      const auto blocks = static_cast<unsigned>((kCount + 255) / 256);
      ASSERT_EQ(driver_.launch_kernel(kernel_, blocks, 1, 1, 256, 1, 1, 0, stream_,
                                      parameters.data(), nullptr),
                0);
    }
  }
  // The same on the host, from the beginning.
  static std::vector<float> TrainedOnHost(std::uint64_t steps) {
    std::vector<float> state(kCount);
    for (std::uint64_t step = 1; step <= steps; ++step) {
      for (std::uint64_t i = 0; i < kCount; ++i) StepElement({state.data(), kCount, step}, i);
    }
    return state;
  }
  std::unique_ptr<Memory> NewState() {
    auto memory = Allocate(kCount * 4);
    Write(Bytes(kCount * 4), memory->address());
    return memory;
  }
  std::vector<float> OnHost(const Memory& memory) {
    std::vector<float> state(kCount);
    const internal::cuda::CurrentContext current(driver_, context_);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.address());
    EXPECT_EQ(driver_.copy_to_host(state.data(), address, kCount * 4, stream_), 0);
    EXPECT_EQ(driver_.stream_synchronize(stream_), 0);
    return state;
  }

  Sources SourcesIn(const Memory& memory) {
    Sources sources(declaration_);
    EXPECT_TRUE(sources.Bind("w", MemoryView::Cuda(memory.address(), kCount * 4, 0, stream_)).ok());
    return sources;
  }
  // One half after the other, as two ranks would load them.
  void Load(const PlacementRule& rule, const Memory& memory) {
    const auto checkpoint = Checkpoint::Open("c", {.storage = storage_}).value();
    const Mesh mesh = Mesh::Create({{"rank", 2}}).value();
    constexpr std::uint64_t kHalf = kCount * 4 / 2;
    for (const int rank : {0, 1}) {
      std::byte* const half = memory.address() + static_cast<std::uint64_t>(rank) * kHalf;
      ReadRequest request;
      request.Add("w", PlaceTensor(mesh, rank, kShape, {rule}).value(),
                  MutableMemoryView::Cuda(half, kHalf, 0, stream_));
      const auto loaded = checkpoint->Load(request);
      ASSERT_TRUE(loaded.ok()) << loaded.error().ToString();
    }
  }

  internal::cuda::Function* kernel_ = nullptr;
  const std::shared_ptr<Storage> storage_ = MemoryStorage();
  const std::unique_ptr<Communicator> comm_ = SelfCommunicator();
  const std::unique_ptr<Engine> engine_ = Engine::Create({.storage = storage_}).value();
  const std::unique_ptr<Saver> saver_ = Saver::Create(*engine_, *comm_).value();
  Declaration declaration_;
};

TEST_F(CudaSaveTest, WhatIsLoadedGoesOnWithTheSameBits) {
  const auto trained = NewState();
  Train(*trained, 0, 3);
  const auto saved = saver_->Save(SaveTarget::Directory("c"), {.step = 3}, SourcesIn(*trained));
  ASSERT_TRUE(saved.ok()) << saved.error().ToString();
  const auto loaded = NewState();
  Load(Shard{.dim = 0, .axis = "rank"}, *loaded);
  EXPECT_EQ(OnHost(*loaded), TrainedOnHost(3));
  Train(*loaded, 3, 6);
  EXPECT_EQ(OnHost(*loaded), TrainedOnHost(6));
}

// The training goes on at once, in the memory that was saved.
TEST_F(CudaSaveTest, ASaveInTheBackgroundHoldsTheStateOfItsCall) {
  const auto trained = NewState();
  Train(*trained, 0, 3);
  const auto pending =
      saver_->SaveAsync(SaveTarget::Directory("c"), {.step = 3}, SourcesIn(*trained));
  ASSERT_TRUE(pending.ok()) << pending.error().ToString();
  Train(*trained, 3, 6);
  ASSERT_TRUE((*pending)->Wait().ok());
  EXPECT_EQ(OnHost(*trained), TrainedOnHost(6));
  const auto loaded = NewState();
  Load(ShardFlat{.axes = {"rank"}}, *loaded);
  EXPECT_EQ(OnHost(*loaded), TrainedOnHost(3));
}

}  // namespace
}  // namespace sealpoint::testing
