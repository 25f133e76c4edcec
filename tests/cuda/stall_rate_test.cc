// SPDX-License-Identifier: Apache-2.0
// For how long a save in the background from device memory keeps the caller, beside one pinned copy
// of the same bytes by the driver alone. SEALPOINT_CUDA_RATE_MIB: the size, 1024 by default.
// SEALPOINT_CUDA_LOAD_FOLDER: where the checkpoints are written, a temporary folder by default.
// Printed; checked as the design says.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sealpoint/engine.h"
#include "sealpoint/saver.h"
#include "tests/cuda/cuda_rate_fixture.h"
#include "tests/support/process/seconds.h"
#include "tests/support/process/temp_dir.h"

namespace sealpoint::testing {
namespace {

constexpr int kRounds = 11;

class CudaStallRateTest : public CudaRateFixture {
 protected:
  void SetUp() override {
    CudaRateFixture::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    for (std::size_t i = 0; i < host_.size(); i += 61) host_[i] = static_cast<std::byte>(i);
    Write(host_, memory_->address());
    folder_ = Setting("SEALPOINT_CUDA_LOAD_FOLDER", temp_.path());
    engine_ = Engine::Create({.memory_budget_bytes = size_ + 64 * kMiB}).value();
    saver_ = Saver::Create(*engine_, *comm_).value();
    const TensorSpec tensor{.name = "w", .dtype = DType::kUInt8, .shape = {size_}};
    declaration_.Add({.tensor = tensor}).value();
  }

  // Returns for how long it kept the caller.
  double Save(int number) {
    const std::string target = folder_ + "/stall-" + std::to_string(number);
    Sources sources(declaration_);
    EXPECT_TRUE(sources.Bind(0, MemoryView::Cuda(memory_->address(), size_, 0, stream_)).ok());
    std::unique_ptr<PendingSave> pending;
    const double seconds = SecondsOf([&] {
      auto begun = saver_->SaveAsync(SaveTarget::Directory(target), {.step = 1}, sources);
      EXPECT_TRUE(begun.ok()) << begun.status().ToString();
      if (begun.ok()) pending = std::move(*begun);
    });
    if (pending != nullptr) {
      const auto saved = pending->Wait();
      EXPECT_TRUE(saved.ok()) << saved.status().ToString();
    }
    std::filesystem::remove_all(target);
    return seconds;
  }
  void CopyPlainly() const {
    const internal::cuda::CurrentContext current(driver_, context_);
    const auto address =
        static_cast<internal::cuda::Address>(reinterpret_cast<std::uintptr_t>(memory_->address()));
    ASSERT_EQ(driver_.copy_to_host(host_.data(), address, size_, stream_), 0);
    ASSERT_EQ(driver_.stream_synchronize(stream_), 0);
  }

  const TempDir temp_;
  std::string folder_;
  std::unique_ptr<Engine> engine_;
  const std::unique_ptr<Communicator> comm_ = SelfCommunicator();
  std::unique_ptr<Saver> saver_;
  Declaration declaration_;
};

TEST_F(CudaStallRateTest, ASaveInTheBackgroundKeepsTheCallerForOneCopy) {
  Save(0);  // maps and pins the memory
  std::vector<double> ratios;
  for (int round = 1; round <= kRounds; ++round) {
    const double plain = SecondsOf([this] { CopyPlainly(); });
    const double stall = Save(round);
    ratios.push_back(stall / plain);
    std::printf("pinned copy %.1f ms, stall %.1f ms\n", plain * 1e3, stall * 1e3);
  }
  std::nth_element(ratios.begin(), ratios.begin() + kRounds / 2, ratios.end());
  std::printf("stall of a save in the background: %.3f of a pinned copy\n", ratios[kRounds / 2]);
  EXPECT_LE(ratios[kRounds / 2], 1.05);
}

}  // namespace
}  // namespace sealpoint::testing
