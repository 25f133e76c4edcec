// SPDX-License-Identifier: Apache-2.0
//
// What would pass a limit is refused by planning: before the first byte.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

using ::testing::HasSubstr;

struct Outcome {
  Status status{};
  bool wrote = false;  // a byte, perhaps
};

// What comes of a save on `size` ranks, on each of them.
void SaveWithin(int size, const Limits& limits,
                const std::function<void(Communicator&, Declaration&)>& declare,
                const std::function<void(const Outcome&)>& check) {
  WithRanks(size, [&](Communicator& comm) {
    Outcome outcome;
    SaverOptions options{.limits = limits};
    options.on_progress = [&](const PhaseEvent& event) {
      if (event.phase == Phase::kWriteBlobs) outcome.wrote = true;
    };
    SaveJob job(comm, std::move(options));
    Declaration declaration;
    declare(comm, declaration);
    outcome.status = job.Save(declaration).status();
    check(outcome);
  });
}

void ExpectSaved(const Outcome& outcome) {
  EXPECT_TRUE(outcome.status.ok()) << outcome.status.ToString();
}

void ExpectRefused(const Outcome& outcome) {
  EXPECT_THAT(outcome.status, HasCode(Code::kLimitExceeded));
  EXPECT_EQ(outcome.status.place().tensor, "wall");
  EXPECT_FALSE(outcome.wrote);
}

Region BoxAt(std::uint64_t row, std::uint64_t column, std::uint64_t rows, std::uint64_t columns) {
  return Region::Of({.offset = {row, column}, .extent = {rows, columns}});
}

// Three boxes on each rank, which form no grid.
void DeclareWall(Communicator& comm, Declaration& declaration) {
  const auto size = static_cast<std::uint64_t>(comm.size());
  const std::uint64_t column = 4 * static_cast<std::uint64_t>(comm.rank());
  const TensorSpec wall{.name = "wall", .dtype = DType::kUInt8, .shape = {4, 4 * size}};
  for (const Region& region :
       {BoxAt(0, column, 2, 4), BoxAt(2, column, 2, 2), BoxAt(2, column + 2, 2, 2)}) {
    declaration.Add({.tensor = wall, .region = region}).value();
  }
}

TEST(SaveLimitsTest, RefusesTooManyShardsThatFormNoGridBeforeTheFirstByte) {
  for (const int size : RankCounts()) {
    const std::uint64_t shards = 3 * static_cast<std::uint64_t>(size);
    SaveWithin(size, {.box_list_shard_count_max = shards}, DeclareWall, ExpectSaved);
    SaveWithin(size, {.box_list_shard_count_max = shards - 1}, DeclareWall,
               [&](const Outcome& outcome) {
                 ExpectRefused(outcome);
                 EXPECT_THAT(outcome.status.message(),
                             HasSubstr(std::to_string(shards) + " shards that form no grid"));
               });
  }
}

TEST(SaveLimitsTest, RefusesTooManyCornersBeforeTheFirstByte) {
  for (const int size : RankCounts()) {
    const std::uint64_t corners = 12 * static_cast<std::uint64_t>(size) + 4;
    SaveWithin(size, {.tiling_corner_count_max = corners}, DeclareWall, ExpectSaved);
    SaveWithin(size, {.tiling_corner_count_max = corners - 1}, DeclareWall, ExpectRefused);
  }
}

// Two shards from each rank; what one blob has of a tensor is never more than a box list.
TEST(SaveLimitsTest, AGridMayHaveMoreShards) {
  const auto declare = [](Communicator& comm, Declaration& declaration) {
    const auto size = static_cast<std::uint64_t>(comm.size());
    const std::uint64_t row = 2 * static_cast<std::uint64_t>(comm.rank());
    const TensorSpec rows{.name = "rows", .dtype = DType::kUInt8, .shape = {2 * size, 4}};
    declaration.Add({.tensor = rows, .region = BoxAt(row, 0, 1, 4)}).value();
    declaration.Add({.tensor = rows, .region = BoxAt(row + 1, 0, 1, 4)}).value();
  };
  for (const int size : RankCounts()) {
    SaveWithin(size, {.box_list_shard_count_max = 2, .tiling_corner_count_max = 1}, declare,
               ExpectSaved);
  }
}

// Three boxes, of which the first is cut where the ranks divide it.
void DeclareSharedWall(Communicator& comm, Declaration& declaration) {
  const TensorSpec wall{
      .name = "wall", .dtype = DType::kUInt8, .shape = {4, 8192}, .chunk_size_bytes = 4096};
  std::vector<int> all;
  for (int rank = 0; rank < comm.size(); ++rank) all.push_back(rank);
  for (const Region& region :
       {BoxAt(0, 0, 3, 8192), BoxAt(3, 0, 1, 4096), BoxAt(3, 4096, 1, 4096)}) {
    declaration.Add({.tensor = wall, .region = region, .replicas = all}).value();
  }
}

TEST(SaveLimitsTest, CountsTheShardsThatTheDivisionOfReplicasMakes) {
  for (const int size : RankCounts()) {
    if (size == 1) continue;
    SaveWithin(size, {.box_list_shard_count_max = 3}, DeclareSharedWall, ExpectRefused);
    SaveWithin(size, {.box_list_shard_count_max = 8}, DeclareSharedWall, ExpectSaved);
  }
}

// Two ranks cut the first box between rows: four boxes and the tensor have 20 corners. Three cut it
// within a row, into two runs of two boxes: 28.
TEST(SaveLimitsTest, CountsTheCornersThatTheDivisionOfReplicasMakes) {
  for (const int size : RankCounts()) {
    if (size != 2 && size != 3) continue;
    const std::uint64_t corners = size == 2 ? 20 : 28;
    SaveWithin(size, {.tiling_corner_count_max = corners}, DeclareSharedWall, ExpectSaved);
    SaveWithin(size, {.tiling_corner_count_max = corners - 1}, DeclareSharedWall, ExpectRefused);
  }
}

// Each rank has a shard of the tensors `even` and `odd`, and two objects.
void DeclareRows(Communicator& comm, Declaration& declaration) {
  const auto size = static_cast<std::uint64_t>(comm.size());
  const auto rank = static_cast<std::uint64_t>(comm.rank());
  for (const std::string name : {"even", "odd"}) {
    const TensorSpec rows{.name = name, .dtype = DType::kUInt8, .shape = {size, 4}};
    declaration.Add({.tensor = rows, .region = BoxAt(rank, 0, 1, 4)}).value();
  }
  for (const std::string name : {"log", "notes"}) {
    EXPECT_TRUE(declaration.AddObject({.name = name + std::to_string(rank)}).ok());
  }
}

TEST(SaveLimitsTest, RefusesTooManyShardsTensorsOrObjectsBeforeTheFirstByte) {
  const auto refused = [](const std::string& found) {
    return [found](const Outcome& outcome) {
      EXPECT_THAT(outcome.status, FailsRule(Code::kLimitExceeded, "R-IDX-04"));
      EXPECT_THAT(outcome.status.message(), HasSubstr(found + " on all ranks together, the limit"));
      EXPECT_FALSE(outcome.wrote);
    };
  };
  for (const int size : RankCounts()) {
    const auto ranks = static_cast<std::uint64_t>(size);
    SaveWithin(size,
               {.tensor_count_max = 2, .object_count_max = 2 * ranks, .shard_count_max = 4 * ranks},
               DeclareRows, ExpectSaved);
    SaveWithin(size, {.shard_count_max = 2 * ranks - 1}, DeclareRows,
               refused(std::to_string(2 * ranks) + " shards of tensors"));
    SaveWithin(size, {.tensor_count_max = 1}, DeclareRows, refused("2 tensors"));
    SaveWithin(size, {.object_count_max = 2 * ranks - 1}, DeclareRows,
               refused(std::to_string(2 * ranks) + " objects"));
  }
}

}  // namespace
}  // namespace sealpoint::testing
