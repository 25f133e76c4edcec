// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using internal::saver::MakeSavePlan;
using internal::saver::SavePlan;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// "name[begin:end]" of each shard.
std::vector<std::string> PiecesOf(const Declaration& declaration, const SavePlan& plan) {
  std::vector<std::string> shards;
  for (const internal::saver::PlannedShard& shard : plan.shards) {
    shards.push_back(declaration.tensors()[shard.slot].tensor.name + "[" +
                     std::to_string(shard.run.begin) + ":" + std::to_string(shard.run.end) + "]");
  }
  return shards;
}

DeclaredTensor InGroup(std::string name, std::string group) {
  DeclaredTensor held{.tensor = ByteTensor(std::move(name), 4)};
  held.tensor.group = std::move(group);
  return held;
}

TEST(SavePlanTest, PiecesComeByGroupThenNameThenRegion) {
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("w", 10), .region = Slice(6, 10)}).value();
  declaration.Add(InGroup("z", "late")).value();
  declaration.Add(InGroup("y", "early")).value();
  declaration.Add({.tensor = ByteTensor("w", 10), .region = Slice(0, 6)}).value();
  declaration.Add(InGroup("x", "late")).value();
  declaration.Add({.tensor = ByteTensor("e", 0)}).value();
  declaration.Add({.tensor = ByteTensor("v", 3)}).value();
  const SavePlan plan = MakeSavePlan(declaration, 0, 1, {}).value();
  EXPECT_THAT(PiecesOf(declaration, plan),
              ElementsAre("v[0:3]", "w[0:6]", "w[0:4]", "y[0:4]", "x[0:4]", "z[0:4]"));
  EXPECT_EQ(plan.shards[1].slot, 3u);
  EXPECT_THAT(plan.empty_slots, ElementsAre(5));
  EXPECT_EQ(plan.tensor_bytes, 25u);
}

// What they share is one stream of three tensors of two chunks.
TEST(SavePlanTest, WhatRanksShareIsDividedInTheOrderOfTheNames) {
  constexpr std::uint64_t kChunk = 4096;
  const auto shards_of_rank = [](int rank, const std::vector<int>& writers) {
    Declaration declaration;
    for (const char* const name : {"c", "a", "b"}) {
      DeclaredTensor held{.tensor = ByteTensor(name, 2 * kChunk), .replicas = {0, 1}};
      held.tensor.chunk_size_bytes = kChunk;
      declaration.Add(held).value();
    }
    declaration.Add({.tensor = ByteTensor("own" + std::to_string(rank), 2)}).value();
    const SavePlan plan = MakeSavePlan(declaration, rank, 2, writers).value();
    std::uint64_t bytes = 0;
    for (const auto& shard : plan.shards) bytes += shard.run.size();
    EXPECT_EQ(plan.tensor_bytes, bytes);
    return PiecesOf(declaration, plan);
  };
  EXPECT_THAT(shards_of_rank(0, {}), ElementsAre("a[0:8192]", "b[0:4096]", "own0[0:2]"));
  EXPECT_THAT(shards_of_rank(1, {}), ElementsAre("b[4096:8192]", "c[0:8192]", "own1[0:2]"));
  EXPECT_THAT(shards_of_rank(1, {1}),
              ElementsAre("a[0:8192]", "b[0:8192]", "c[0:8192]", "own1[0:2]"));
  EXPECT_THAT(shards_of_rank(0, {1}), IsEmpty());
}

// Replicas that may differ: one rank's, as a whole.
TEST(SavePlanTest, TheFirstWriterTakesAllIfReplicasMayDiffer) {
  const auto shards_of_rank = [](int rank, const std::vector<int>& writers) {
    Declaration declaration;
    for (const char* const name : {"a", "b"}) {
      declaration.Add({.tensor = ByteTensor(name, 8192), .replicas = {0, 1}}).value();
    }
    return PiecesOf(
        declaration,
        MakeSavePlan(declaration, rank, 2, writers, internal::saver::Division::kFirstRank).value());
  };
  EXPECT_THAT(shards_of_rank(0, {}), ElementsAre("a[0:8192]", "b[0:8192]"));
  EXPECT_THAT(shards_of_rank(1, {}), IsEmpty());
  EXPECT_THAT(shards_of_rank(1, {1}), ElementsAre("a[0:8192]", "b[0:8192]"));
}

TEST(SavePlanTest, RefusesTheFirstSlotWhoseReplicasCannotBe) {
  const auto refused = [](std::vector<int> first, std::vector<int> second) {
    Declaration declaration;
    declaration.Add({.tensor = ByteTensor("good", 8), .replicas = {0, 1}}).value();
    declaration.Add({.tensor = ByteTensor("first", 8), .replicas = std::move(first)}).value();
    declaration.Add({.tensor = ByteTensor("second", 8), .replicas = std::move(second)}).value();
    const auto plan = MakeSavePlan(declaration, 1, 2, {});
    EXPECT_THAT(plan.status(), HasCode(Code::kInvalidArgument));
    return plan.error().ToString();
  };
  EXPECT_THAT(refused({1, 2}, {0}), HasSubstr("first"));
  EXPECT_THAT(refused({0}, {1, 2}), HasSubstr("does not list itself"));
  EXPECT_THAT(refused({0, 1}, {1, 2}), HasSubstr("second"));
}

}  // namespace
}  // namespace sealpoint::testing
