// SPDX-License-Identifier: Apache-2.0
// Trainings on CUDA devices: the real ones of this machine, or those of a driver library of ours,
// which computes as the host does (CHAR_LM_HOST_BITS is set then).
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "checkpointing.h"
#include "corpus.h"
#include "cuda_compute.h"
#include "thread_ranks.h"

namespace char_lm {
namespace {

bool HasHostBits() { return std::getenv("CHAR_LM_HOST_BITS") != nullptr; }

MakeCompute ComputeFor(const Rank& rank, bool on_device) {
  return on_device ? OnCuda(rank.exchange.rank()).value() : OnHost();
}

class CudaTraining : public testing::Test {
 protected:
  void SetUp() override {
    const auto compute = OnCuda(0);
    if (!compute.ok()) {
      ASSERT_FALSE(HasHostBits()) << compute.error().ToString();
      GTEST_SKIP() << "CUDA device 0 is not available: " << compute.error().message();
    }
    std::string pattern = testing::TempDir() + "cuda-training-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    options_.series_directory = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(options_.series_directory); }

  std::unique_ptr<Trainer> MakeTrainer(const Rank& rank, const sealpoint::Mesh& mesh,
                                       bool on_device = true) const {
    return std::make_unique<Trainer>(SmallArguments(), corpus_, rank.exchange, mesh,
                                     ComputeFor(rank, on_device));
  }

  Trained Train(const sealpoint::Mesh& mesh, std::uint64_t steps, bool on_device = true) const {
    Trained trained;
    OnMesh(mesh, [&](const Rank& rank) {
      const auto trainer = MakeTrainer(rank, mesh, on_device);
      const Trained mine = TrainTo(steps, *trainer);
      if (rank.exchange.rank() == 0) {
        trained = mine;
      }
    });
    return trained;
  }

  // Leaves a checkpoint of the state after `steps`, saved in the foreground.
  void Save(const sealpoint::Mesh& mesh, std::uint64_t steps, bool on_device = true) const {
    OnMesh(mesh, [&](const Rank& rank) {
      const auto trainer = MakeTrainer(rank, mesh, on_device);
      const auto checkpoints = Checkpointing::Create(options_, rank.communicator, *trainer);
      TrainTo(steps, *trainer);
      const auto saved = (*checkpoints)->Save();
      EXPECT_TRUE(saved.ok()) << saved.error().ToString();
    });
  }

  // Resumes, demands `state`, trains on to `steps` and returns what came of it.
  Trained Resume(const sealpoint::Mesh& mesh, const std::vector<float>& state, std::uint64_t steps,
                 bool on_device = true) const {
    Trained trained;
    OnMesh(mesh, [&](const Rank& rank) {
      const auto trainer = MakeTrainer(rank, mesh, on_device);
      const auto checkpoints = Checkpointing::Create(options_, rank.communicator, *trainer);
      const auto resumed = (*checkpoints)->Resume();
      ASSERT_TRUE(resumed.ok()) << resumed.error().ToString();
      EXPECT_NE(*resumed, "");
      EXPECT_TRUE(SameBits(trainer->WholeState(), state));
      const Trained mine = TrainTo(steps, *trainer);
      if (rank.exchange.rank() == 0) {
        trained = mine;
      }
    });
    return trained;
  }

  const Corpus corpus_ = TokenizeText(SomeText());
  CheckpointOptions options_;
};

TEST_F(CudaTraining, LossesAreThoseOfTheHost) {
  const Trained host = Train(MeshOf(1, 1), 20, false);
  const Trained device = Train(MeshOf(1, 1), 20);
  if (HasHostBits()) {
    ExpectSame(device, host);
  }
  ASSERT_EQ(device.losses.size(), host.losses.size());
  for (std::size_t i = 0; i < host.losses.size(); ++i) {
    // tanh, exp and log may differ in their last bits, which training spreads.
    EXPECT_NEAR(device.losses[i], host.losses[i], 1e-3F * host.losses[i]) << i;
  }
}

TEST_F(CudaTraining, BitsDoNotDependOnTheMesh) {
  const Trained alone = Train(MeshOf(1, 1), 6);
  for (const sealpoint::Mesh& mesh : {MeshOf(1, 1), MeshOf(2, 2), MeshOf(13, 1)}) {
    SCOPED_TRACE(testing::PrintToString(mesh.axes()));
    ExpectSame(Train(mesh, 6), alone);
  }
}

TEST_F(CudaTraining, ResumedOnAnyMeshGoesOnWithTheSameBits) {
  const std::vector<float> state = Train(MeshOf(1, 1), 3).state;
  Trained expected = Train(MeshOf(1, 1), 6);
  expected.losses.erase(expected.losses.begin(), expected.losses.begin() + 3);
  Save(MeshOf(2, 2), 3);
  for (const sealpoint::Mesh& mesh : {MeshOf(2, 2), MeshOf(1, 1), MeshOf(3, 1)}) {
    SCOPED_TRACE(testing::PrintToString(mesh.axes()));
    ExpectSame(Resume(mesh, state, 6), expected);
  }
}

// The training goes on at once, in the memory that was saved.
TEST_F(CudaTraining, ASaveInTheBackgroundHoldsTheStateOfItsCall) {
  const std::vector<float> state = Train(MeshOf(1, 1), 3).state;
  OnMesh(MeshOf(2, 1), [&](const Rank& rank) {
    const auto trainer = MakeTrainer(rank, MeshOf(2, 1));
    const auto checkpoints = Checkpointing::Create(options_, rank.communicator, *trainer);
    TrainTo(3, *trainer);
    const auto pending = (*checkpoints)->SaveAsync();
    ASSERT_TRUE(pending.ok()) << pending.error().ToString();
    TrainTo(6, *trainer);
    EXPECT_TRUE((*pending)->Wait().ok());
  });
  Resume(MeshOf(1, 2), state, 3);
}

TEST_F(CudaTraining, CheckpointsMoveBetweenHostAndDevice) {
  Save(MeshOf(2, 1), 2, false);
  const Trained on_device = Resume(MeshOf(1, 2), Train(MeshOf(1, 1), 2, false).state, 4);
  EXPECT_EQ(on_device.losses.size(), 2U);
  Save(MeshOf(1, 2), 3);
  const Trained on_host = Resume(MeshOf(2, 1), Train(MeshOf(1, 1), 3).state, 4, false);
  EXPECT_EQ(on_host.losses.size(), 1U);
}

TEST_F(CudaTraining, RanksTakeTurnsOnTheDevices) {
  const char* const devices = std::getenv("FAKE_CUDA_DEVICES");
  if (devices == nullptr) {
    GTEST_SKIP() << "how many devices there are is known for our own driver only";
  }
  OnMesh(MeshOf(3, 1), [&](const Rank& rank) {
    const auto trainer = MakeTrainer(rank, MeshOf(3, 1));
    const int expected = static_cast<int>(rank.exchange.rank()) % std::atoi(devices);
    EXPECT_EQ(trainer->device(), expected);
    for (const LocalTensor& tensor : trainer->Tensors()) {
      EXPECT_EQ(tensor.device, expected);
    }
  });
}

}  // namespace
}  // namespace char_lm
