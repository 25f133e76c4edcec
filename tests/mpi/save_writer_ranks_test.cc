// SPDX-License-Identifier: Apache-2.0
//
// Only some ranks write: what they hold with others is theirs, and what only others hold is
// refused.
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <vector>

#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

constexpr std::uint64_t kSize = 100000;

void OnRanks(const std::function<void(Communicator&)>& body, int size_min = 1) {
  for (const int size : RankCounts()) {
    if (size >= size_min) WithRanks(size, body);
  }
}

// Every other rank, the first among them.
std::vector<int> EvenRanks(const Communicator& comm) {
  std::vector<int> even;
  for (int rank = 0; rank < comm.size(); rank += 2) even.push_back(rank);
  return even;
}

Declaration SharedByAll(const Communicator& comm) {
  Declaration declaration;
  declaration.Add({.tensor = ByteTensor("t", kSize), .replicas = AllRanks(comm)}).value();
  return declaration;
}

TEST(SaveWriterRanks, WriteAllThatTheirGroupsHold) {
  OnRanks([](Communicator& comm) {
    const std::vector<int> writers = EvenRanks(comm);
    SaveJob job(comm, {.writer_ranks = writers});
    Declaration declaration = SharedByAll(comm);
    declaration.Add({.tensor = ByteTensor("empty", 0)}).value();
    if (comm.rank() == 0) {
      EXPECT_TRUE(declaration.AddObject({.name = "rng", .media_type = "text/plain"}).ok());
    }
    const auto info = job.Save(declaration);
    ASSERT_TRUE(info.ok()) << info.error().ToString();
    EXPECT_EQ(info->blob_count, writers.size());
    const auto checkpoint = OpenFrom(job.posix, job.path("ckpt"));
    EXPECT_EQ(LoadWhole(*checkpoint, "t"), Content("t", kSize));
    std::set<BlobId> blobs;
    for (const ShardInfo& shard : checkpoint->Shards("t").value()) {
      EXPECT_LE(shard.region.element_count(), kSize / writers.size() + kChunkSizeMinBytes);
      blobs.insert(shard.blob);
    }
    EXPECT_EQ(blobs.size(), writers.size());
  });
}

void ExpectRefused(const Declaration& declaration, SaveJob& job, const char* name) {
  const Status status = job.Save(declaration).status();
  EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-27"));
  EXPECT_EQ(status.place().tensor + status.place().object, name);
  EXPECT_EQ(status.place().rank, 1);
  job.ExpectSameOnAllRanks(status);
  EXPECT_THAT(FileNames(*job.posix, job.path("")), ::testing::IsEmpty());
}

TEST(SaveWriterRanks, RefuseWhatNoneOfThemHolds) {
  const auto on_rank_1 = [](const char* name, const auto& add) {
    OnRanks(
        [&](Communicator& comm) {
          SaveJob job(comm, {.writer_ranks = {0}});
          Declaration declaration = SharedByAll(comm);
          if (comm.rank() == 1) add(declaration);
          ExpectRefused(declaration, job, name);
        },
        2);
  };
  on_rank_1("alone", [](Declaration& declaration) {
    declaration.Add({.tensor = ByteTensor("alone", 10)}).value();
  });
  on_rank_1("empty", [](Declaration& declaration) {
    declaration.Add({.tensor = ByteTensor("empty", 0)}).value();
  });
  on_rank_1("rng", [](Declaration& declaration) {
    EXPECT_TRUE(declaration.AddObject({.name = "rng", .media_type = "text/plain"}).ok());
  });
}

TEST(SaveWriterRanks, AreRanksThatAscend) {
  OnRanks([](Communicator& comm) {
    for (const std::vector<int>& wrong :
         {std::vector<int>{-1}, {comm.size()}, {0, 0}, {comm.size() - 1, -1}}) {
      const auto engine = SmallEngine(MemoryStorage());
      const Status status = Saver::Create(*engine, comm, {.writer_ranks = wrong}).status();
      EXPECT_THAT(status, HasCode(Code::kInvalidArgument));
      EXPECT_THAT(status.message(), ::testing::HasSubstr("writer_ranks has rank"));
    }
  });
}

TEST(SaveWriterRanks, AreTheSameOnAllRanks) {
  OnRanks(
      [](Communicator& comm) {
        SaveJob job(comm, {.writer_ranks = {comm.rank()}});
        const Status status = job.Save(SharedByAll(comm)).status();
        EXPECT_THAT(status, FailsRule(Code::kInvalidArgument, "R-CMT-17"));
        job.ExpectSameOnAllRanks(status);
        EXPECT_THAT(FileNames(*job.posix, job.path("")), ::testing::IsEmpty());
      },
      2);
}

}  // namespace
}  // namespace sealpoint::testing
