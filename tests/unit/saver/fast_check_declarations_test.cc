// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "lib/saver/check_declarations.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::testing {
namespace {

using internal::saver::FastCheckDeclarations;
using internal::saver::MakeSavePlan;
using internal::saver::SavePlan;
using Declare = std::function<void(int rank, Declaration&)>;

// Whether what two ranks declare adds up, to both of them.
bool AddsUp(const Declare& declare, const std::vector<int>& writer_ranks = {},
            const Limits& limits = {}) {
  std::atomic<int> count{0};
  WithRanks(2, [&](Communicator& comm) {
    Declaration declaration;
    declare(comm.rank(), declaration);
    // Ranks whose declarations cannot be planned agree on that before this check.
    const SavePlan plan =
        MakeSavePlan(declaration, comm.rank(), comm.size(), writer_ranks).value_or(SavePlan());
    const Result<bool> adds_up =
        FastCheckDeclarations(comm, declaration, plan, writer_ranks, limits);
    ASSERT_TRUE(adds_up.ok()) << adds_up.error().ToString();
    if (*adds_up) ++count;
  });
  EXPECT_NE(count, 1) << "the ranks differ";
  return count == 2;
}

// Half of a tensor on each rank; that of rank 1 is changed.
bool HalvesSumUp(const TensorSpec& tensor, const std::function<void(TensorSpec&)>& change) {
  return AddsUp([&](int rank, Declaration& declaration) {
    TensorSpec mine = tensor;
    if (rank == 1) change(mine);
    declaration.Add({.tensor = mine, .region = rank == 0 ? Slice(0, 5) : Slice(5, 10)}).value();
  });
}

Declare Both(std::function<DeclaredTensor(int rank)> held) {
  return [held = std::move(held)](int rank, Declaration& declaration) {
    declaration.Add(held(rank)).value();
  };
}

TEST(FastCheckDeclarations, WhereTheyTile) {
  EXPECT_TRUE(HalvesSumUp(ByteTensor("t", 10), [](TensorSpec&) {}));
}

TEST(FastCheckDeclarations, NotWhereSpecsDiffer) {
  TensorSpec tensor = ByteTensor("t", 10);
  tensor.placement = {"replicate(a)"};
  const auto differ = [&](const auto& change) { return !HalvesSumUp(tensor, change); };
  EXPECT_TRUE(differ([](TensorSpec& t) { t.dtype = DType::kInt8; }));
  EXPECT_TRUE(differ([](TensorSpec& t) { t.shape = {11}; }));
  EXPECT_TRUE(differ([](TensorSpec& t) { t.chunk_size_bytes *= 2; }));
  EXPECT_TRUE(differ([](TensorSpec& t) { t.placement = {"replicate(b)"}; }));
  tensor.dtype = static_cast<DType>(4000);
  tensor.element_size = 1;
  EXPECT_TRUE(differ([](TensorSpec& t) { t.element_size = 2; }));
}

TEST(FastCheckDeclarations, NotWithAHoleOrAnOverlap) {
  for (const Region& region : {Slice(6, 10), Slice(4, 10)}) {
    EXPECT_FALSE(AddsUp(Both([&](int rank) {
      return DeclaredTensor{.tensor = ByteTensor("t", 10),
                            .region = rank == 0 ? Slice(0, 5) : region};
    })));
  }
}

TEST(FastCheckDeclarations, NotWhereAHolderListsAnother) {
  EXPECT_TRUE(AddsUp(
      Both([](int) { return DeclaredTensor{.tensor = ByteTensor("t", 9), .replicas = {0, 1}}; })));
  EXPECT_FALSE(AddsUp([](int rank, Declaration& declaration) {
    if (rank == 0) declaration.Add({.tensor = ByteTensor("t", 9), .replicas = {0, 1}}).value();
  }));
}

// Each list is right for another region.
TEST(FastCheckDeclarations, NotWhereListsAreExchanged) {
  const auto exchanged = [](bool are_exchanged) {
    return AddsUp([=](int rank, Declaration& declaration) {
      const bool shares_first = rank == 0 || !are_exchanged;
      const std::vector<int> both = {0, 1};
      declaration
          .Add({.tensor = ByteTensor("t", 10),
                .region = shares_first ? Slice(0, 5) : Slice(5, 10),
                .replicas = both})
          .value();
      if (rank == 0)
        declaration.Add({.tensor = ByteTensor("t", 10), .region = Slice(5, 10)}).value();
    });
  };
  EXPECT_TRUE(exchanged(false));
  EXPECT_FALSE(exchanged(true));
}

TEST(FastCheckDeclarations, NotWhereANameComesTwice) {
  EXPECT_FALSE(AddsUp([](int, Declaration& declaration) {
    EXPECT_TRUE(declaration.AddObject({.name = "o", .media_type = "t"}).ok());
  }));
  EXPECT_FALSE(AddsUp(Both([](int rank) {
    return DeclaredTensor{.tensor = ByteTensor("t", rank == 0 ? 10 : 20)};
  }))) << "each is whole";
  EXPECT_FALSE(AddsUp(Both([](int rank) {
    return DeclaredTensor{.tensor = ByteTensor("t", rank == 0 ? 10 : 0)};
  }))) << "whole here, empty there";
}

TEST(FastCheckDeclarations, WithEmptyTensorsThatAreAlike) {
  const auto empties = [](DType of_rank_1) {
    return Both([=](int rank) {
      TensorSpec tensor = ByteTensor("e", 0);
      if (rank == 1) tensor.dtype = of_rank_1;
      return DeclaredTensor{.tensor = tensor};
    });
  };
  EXPECT_TRUE(AddsUp(empties(DType::kUInt8)));
  EXPECT_FALSE(AddsUp(empties(DType::kInt8)));
}

TEST(FastCheckDeclarations, NotWhereNoneWrites) {
  for (const int rank_of_all : {0, 1}) {
    const auto on = [&](const auto& add) {
      return AddsUp(
          [&](int rank, Declaration& mine) {
            if (rank == rank_of_all) add(mine);
          },
          {0});
    };
    const bool writes = rank_of_all == 0;
    EXPECT_EQ(on([](Declaration& d) { d.Add({.tensor = ByteTensor("t", 9)}).value(); }), writes);
    EXPECT_EQ(on([](Declaration& d) { d.Add({.tensor = ByteTensor("e", 0)}).value(); }), writes);
    EXPECT_EQ(
        on([](Declaration& d) { EXPECT_TRUE(d.AddObject({.name = "o", .media_type = "t"}).ok()); }),
        writes);
  }
}

// They are counted exactly, against the limit of the committer.
TEST(FastCheckDeclarations, NotWithMoreCornersThanTheLimit) {
  const Declare whole = [](int rank, Declaration& declaration) {
    if (rank == 0) declaration.Add({.tensor = ByteTensor("t", 9)}).value();
  };
  EXPECT_TRUE(AddsUp(whole, {}, {.tiling_corners_per_shard_max = 2}));
  EXPECT_FALSE(AddsUp(whole, {}, {.tiling_corners_per_shard_max = 1}));
}

// What ranks divide is written in runs, which have more corners than the box.
TEST(FastCheckDeclarations, NotWhereTheRunsOfAReplicaMayHaveTooManyCorners) {
  const Declare replica = Both([](int) {
    return DeclaredTensor{.tensor = {.name = "t", .dtype = DType::kUInt8, .shape = {2, 2}},
                          .replicas = {0, 1}};
  });
  EXPECT_TRUE(AddsUp(replica, {}, {.tiling_corners_per_shard_max = 12}));
  EXPECT_FALSE(AddsUp(replica, {}, {.tiling_corners_per_shard_max = 11}));
}

}  // namespace
}  // namespace sealpoint::testing
