// SPDX-License-Identifier: Apache-2.0
//
// The bounds of docs/evidence/scale.md that depend on no machine, on trainings of 64 ranks.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scale/simulation.h"

namespace sealpoint::testing {
namespace {

Scenario SmallMegatron(std::uint32_t data_ranks) {
  return MegatronScenario({.tensor_ranks = 2,
                           .pipeline_ranks = 2,
                           .data_ranks = data_ranks,
                           .layers = 16,
                           .hidden = 512,
                           .vocabulary = 1024});
}

Scenario SmallHsdp(std::uint32_t shard_ranks, std::uint32_t replica_ranks) {
  return HsdpScenario({.shard_ranks = shard_ranks,
                       .replica_ranks = replica_ranks,
                       .layers = 16,
                       .hidden = 512,
                       .inner = 1024,
                       .key_value = 128,
                       .vocabulary = 1024});
}

Scenario SmallExperts(std::uint32_t data_ranks) {
  return ExpertScenario({.data_ranks = data_ranks,
                         .expert_ranks = 4,
                         .tensor_ranks = 2,
                         .layers = 4,
                         .experts = 8,
                         .hidden = 256,
                         .inner = 512,
                         .vocabulary = 1024});
}

void SaveAndOpen(Simulation& simulation) {
  simulation.PlanAndWrite();
  simulation.MergeAndCommit();
  simulation.Open();
}

class Scale : public ::testing::TestWithParam<int> {
 protected:
  Scenario Saved() const {
    if (GetParam() == 0) return SmallMegatron(16);
    return GetParam() == 1 ? SmallHsdp(16, 4) : SmallExperts(8);
  }
  Scenario Resharded() const {
    if (GetParam() == 0) {
      return MegatronScenario({.tensor_ranks = 4,
                               .pipeline_ranks = 1,
                               .data_ranks = 3,
                               .layers = 16,
                               .hidden = 512,
                               .vocabulary = 1024});
    }
    return GetParam() == 1 ? SmallHsdp(12, 2) : SmallExperts(3);
  }
};

TEST_P(Scale, DeclarationsAgreeAndWhatWasWrittenTiles) {
  Simulation simulation(Saved(), {});
  SaveAndOpen(simulation);
  EXPECT_TRUE(simulation.figures().adds_up);
  EXPECT_EQ(simulation.checkpoint().tensor_count(), TensorCount(Saved()));
  EXPECT_EQ(simulation.checkpoint().raw_bytes(), simulation.figures().raw_bytes);
}

TEST_P(Scale, TheIndexIsThatOfAllSummaries) {
  Simulation simulation(Saved(), {});
  SaveAndOpen(simulation);
  const Bytes index = simulation.IndexOfSummaries();
  const ByteSpan stored = simulation.checkpoint().index_bytes();
  ASSERT_LT(index.size(), stored.size());
  EXPECT_TRUE(std::equal(index.begin(), index.end(),
                         stored.end() - static_cast<std::ptrdiff_t>(index.size())));
}

// Names, shapes and regions do not come to rank 0 once per rank: what comes is an index and a pin
// per blob.
TEST_P(Scale, RankZeroGetsWhatTheIndexHolds) {
  Simulation simulation(Saved(), {});
  SaveAndOpen(simulation);
  const ScaleFigures& figures = simulation.figures();
  EXPECT_LT(figures.gathered_bytes, 3 * figures.index_bytes);
  EXPECT_LT(2 * figures.gathered_bytes, figures.summary_bytes);
}

TEST_P(Scale, AReshardedLoadReadsOnceWhatItWants) {
  Simulation simulation(Saved(), {});
  SaveAndOpen(simulation);
  const Scenario target = Resharded();
  std::uint64_t wanted = 0;
  for (int rank = 0; rank < target.mesh.size(); ++rank) {
    const LoadFigures load = simulation.PlanLoad(target, rank, "");
    EXPECT_GE(load.plan.bytes_read, load.plan.bytes_requested);
    wanted += load.plan.bytes_requested;
  }
  EXPECT_GE(wanted, simulation.figures().raw_bytes);
}

// One rank of 16,384: most of them owner none of its names.
TEST(ScaleOfOneRank, WhatItSendsBeforeTheFirstSaveGrowsWithWhatItHolds) {
  const Scenario megatron = MegatronScenario({});
  Simulation simulation(megatron, {.stride = static_cast<std::size_t>(megatron.mesh.size())});
  simulation.PlanAndWrite();
  const ScaleFigures& figures = simulation.figures();
  ASSERT_GT(figures.slots_max, 0u);
  EXPECT_LE(figures.declared_bytes.max, 24 * static_cast<double>(figures.slots_max));
}

INSTANTIATE_TEST_SUITE_P(Trainings, Scale, ::testing::Values(0, 1, 2));

// Twice the data ranks: twice the shards of the optimizer.
class ScaleGrowth : public ::testing::Test {
 protected:
  ScaleGrowth() {
    SaveAndOpen(half_);
    SaveAndOpen(whole_);
  }
  double Grown(std::uint64_t ScaleFigures::* field) {
    return static_cast<double>(whole_.figures().*field - half_.figures().*field);
  }
  // What a shard adds to these bytes, of which the blobs take a part.
  void ExpectItsReference(std::uint64_t ScaleFigures::* bytes) {
    const double blob_bytes = 150 * Grown(&ScaleFigures::blobs);
    EXPECT_LE(Grown(bytes) - blob_bytes, 9 * Grown(&ScaleFigures::shards));
  }

  Simulation half_{SmallMegatron(8), {}};
  Simulation whole_{SmallMegatron(16), {}};
};

// 8 bytes for each shard.
TEST_F(ScaleGrowth, AGridShardCostsTheIndexItsReference) {
  ExpectItsReference(&ScaleFigures::index_bytes);
  EXPECT_LE(whole_.figures().bytes_per_shard, 16);
}

// A grid has its cuts once, however many tensors have it; a owner sends equal steps as three
// numbers.
TEST_F(ScaleGrowth, AGridShardComesToRankZeroAsItsReference) {
  ExpectItsReference(&ScaleFigures::gathered_bytes);
}

}  // namespace
}  // namespace sealpoint::testing
