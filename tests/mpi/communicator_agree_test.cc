// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "lib/comm/agree.h"
#include "sealpoint/communicator.h"
#include "tests/support/ranks/with_ranks.h"

namespace sealpoint::internal {
namespace {

using testing::RankCounts;
using testing::WithRanks;

Status DiskError(int rank) {
  return Status(Status(Code::kNoSpace, "pwrite on " + std::to_string(rank))
                    .AtPath("ckpt/x.blob")
                    .AtOffset(4096));
}

TEST(Agree, SucceedsWhereAllSucceed) {
  for (const int size : RankCounts()) {
    WithRanks(size, [](Communicator& comm) { EXPECT_TRUE(AgreeOnStatus(comm, Status()).ok()); });
  }
}

TEST(Agree, OneFailureOnAnyRankReachesAllWithItsPlace) {
  for (const int size : RankCounts()) {
    WithRanks(size, [size](Communicator& comm) {
      for (int failing = 0; failing < size; ++failing) {
        const Status agreed =
            AgreeOnStatus(comm, comm.rank() == failing ? DiskError(failing) : Status());
        const Status expected(DiskError(failing).AtRank(failing, comm.host()));
        EXPECT_EQ(agreed, expected) << agreed.ToString();
      }
    });
  }
}

TEST(Agree, LowestFailingRankIsTheCause) {
  for (const int size : RankCounts()) {
    WithRanks(size, [size](Communicator& comm) {
      const int first = size / 2;
      const Status agreed =
          AgreeOnStatus(comm, comm.rank() >= first ? DiskError(comm.rank()) : Status());
      EXPECT_EQ(agreed, Status(DiskError(first).AtRank(first, comm.host())));
    });
  }
}

TEST(Agree, KeepsTheRankThatAnErrorAlreadyNames) {
  for (const int size : RankCounts()) {
    WithRanks(size, [](Communicator& comm) {
      const Status elsewhere(DiskError(0).AtRank(77, "far"));
      EXPECT_EQ(AgreeOnStatus(comm, elsewhere), elsewhere);
    });
  }
}

TEST(Agree, AllHearThatAnOutcomeIsUnknown) {
  for (const int size : RankCounts()) {
    WithRanks(size, [](Communicator& comm) {
      // An error of another rule keeps its rule.
      const Status unknown(DiskError(0).AtRule("R-CMT-08").WithUnknownOutcome());
      const Status agreed = AgreeOnStatus(comm, comm.rank() == 0 ? unknown : Status());
      EXPECT_TRUE(agreed.has_unknown_outcome());
      EXPECT_EQ(agreed.place().rule, "R-CMT-08");
    });
  }
}

TEST(Agree, GoesOnAfterAFailure) {
  for (const int size : RankCounts()) {
    WithRanks(size, [](Communicator& comm) {
      EXPECT_FALSE(AgreeOnStatus(comm, DiskError(comm.rank())).ok());
      EXPECT_TRUE(AgreeOnStatus(comm, Status()).ok());
    });
  }
}

TEST(BroadcastResult, GivesTheValueOfTheRootToAll) {
  for (const int size : RankCounts()) {
    WithRanks(size, [size](Communicator& comm) {
      for (int root = 0; root < size; ++root) {
        const ByteSpan text = AsBytes(comm.rank() == root ? "index" : "not this one");
        const auto result = comm::BroadcastResult(comm, root, Bytes(text.begin(), text.end()));
        ASSERT_TRUE(result.ok()) << result.error().ToString();
        EXPECT_EQ(AsText(*result), "index");
      }
    });
  }
}

TEST(BroadcastResult, GivesAnEmptyValue) {
  for (const int size : RankCounts()) {
    WithRanks(size, [](Communicator& comm) {
      const auto result = comm::BroadcastResult(comm, 0, Bytes());
      ASSERT_TRUE(result.ok()) << result.error().ToString();
      EXPECT_TRUE(result->empty());
    });
  }
}

TEST(BroadcastResult, GivesTheErrorOfTheRootToAll) {
  for (const int size : RankCounts()) {
    WithRanks(size, [size](Communicator& comm) {
      const int root = size - 1;
      Result<Bytes> mine = Bytes(3);
      if (comm.rank() == root) mine = DiskError(root);
      const auto result = comm::BroadcastResult(comm, root, std::move(mine));
      EXPECT_EQ(result.error(), Status(DiskError(root).AtRank(root, comm.host())));
    });
  }
}

}  // namespace
}  // namespace sealpoint::internal
