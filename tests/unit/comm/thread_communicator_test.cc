// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "sealpoint/communicator.h"
#include "tests/support/ranks/with_ranks.h"

// Ranks that leave, come late or make another call. Only threads can be made to do so at will.

namespace sealpoint {
namespace {

using std::chrono::milliseconds;
using testing::WithRanks;

TEST(ThreadCommunicator, DeadlineEndsTheWaitForARankThatDoesNotCome) {
  const auto comms = ThreadCommunicators(2);
  comms[0]->set_deadline(milliseconds(20));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(comms[0]->Barrier().code(), Code::kTimeout);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(20));
}

TEST(ThreadCommunicator, TimeoutOfOneRankEndsTheWaitOfAll) {
  const auto comms = ThreadCommunicators(3);
  comms[0]->set_deadline(milliseconds(20));
  Status waiting;  // rank 1 has no deadline of its own; rank 2 never comes
  std::thread second([&] { waiting = comms[1]->Barrier(); });
  EXPECT_EQ(comms[0]->Barrier().code(), Code::kTimeout);
  second.join();
  EXPECT_EQ(waiting.code(), Code::kTimeout);
}

TEST(ThreadCommunicator, StaysBrokenAfterATimeout) {
  const auto comms = ThreadCommunicators(2);
  comms[0]->set_deadline(milliseconds(1));
  const Status first = comms[0]->Barrier();
  ASSERT_EQ(first.code(), Code::kTimeout);
  EXPECT_EQ(comms[1]->Barrier(), first);
  EXPECT_EQ(comms[0]->AllReduceMax({1}).error(), first);
}

TEST(ThreadCommunicator, EndlessDeadlineDoesNotOverflow) {
  WithRanks(2, [](Communicator& comm) {
    comm.set_deadline(milliseconds::max());
    if (comm.rank() == 1) std::this_thread::sleep_for(milliseconds(20));
    EXPECT_TRUE(comm.Barrier().ok());
  });
}

TEST(ThreadCommunicator, RankThatLeavesEndsTheWaitOfTheOthers) {
  WithRanks(3, [](Communicator& comm) {
    if (comm.rank() == 2) return;
    comm.set_deadline(kForever);
    const Status status = comm.Barrier();
    EXPECT_EQ(status.code(), Code::kComm);
    EXPECT_EQ(status.message(), "rank 2 left");
  });
}

TEST(ThreadCommunicator, RoundThatWasCompleteCountsThoughARankLeftSince) {
  for (int round = 0; round < 50; ++round) {
    WithRanks(4, [](Communicator& comm) { EXPECT_TRUE(comm.Barrier().ok()); });
  }
}

TEST(ThreadCommunicator, ABrokenGroupHasNoDuplicates) {
  WithRanks(2, [](Communicator& comm) {
    if (comm.rank() == 1) return;
    const Status status = comm.DuplicateForBackground().status();
    EXPECT_EQ(status.code(), Code::kComm);
    EXPECT_EQ(status.message(), "rank 1 left");
  });
}

TEST(ThreadCommunicator, AnInterruptedRankHearsTheFirstReason) {
  WithRanks(2, [](Communicator& comm) {
    const auto duplicate = comm.DuplicateForBackground().value();
    if (comm.rank() == 0) {
      duplicate->Interrupt(Status(Code::kTimeout, "first"));
      duplicate->Interrupt(Status(Code::kTimeout, "second"));
    }
    const Status status = duplicate->communicator().Barrier();
    EXPECT_EQ(status.message(), comm.rank() == 0 ? "first" : "rank 0 left: first");
    EXPECT_TRUE(comm.Barrier().ok()) << "the duplicate alone is broken";
  });
}

TEST(ThreadCommunicator, DifferentCallsAreFound) {
  WithRanks(2, [](Communicator& comm) {
    Bytes bytes;
    const Status status = comm.rank() == 0 ? comm.Barrier() : comm.Broadcast(bytes, 0);
    EXPECT_EQ(status.code(), Code::kComm);
    EXPECT_NE(status.message().find("rank 1 in Broadcast"), std::string::npos) << status.message();
  });
}

TEST(ThreadCommunicator, DifferentRootsAreFound) {
  WithRanks(2, [](Communicator& comm) {
    Bytes bytes;
    EXPECT_EQ(comm.Broadcast(bytes, comm.rank()).code(), Code::kComm);
  });
}

TEST(ThreadCommunicator, RootOutsideTheGroupIsFound) {
  WithRanks(2, [](Communicator& comm) {
    Bytes bytes;
    EXPECT_EQ(comm.Broadcast(bytes, 2).code(), Code::kComm);
  });
}

TEST(ThreadCommunicator, DifferentCountsOfNumbersAreFound) {
  WithRanks(3, [](Communicator& comm) {
    const std::vector<std::uint64_t> numbers(comm.rank() == 2 ? 2 : 1);
    EXPECT_EQ(comm.AllReduceMax(numbers).error().code(), Code::kComm);
  });
}

TEST(ThreadCommunicator, TooFewMessagesAreFoundOnAllRanks) {
  WithRanks(3, [](Communicator& comm) {
    const std::vector<Bytes> outgoing(comm.rank() == 1 ? 2 : 3);
    EXPECT_EQ(comm.AllToAll(outgoing).error().code(), Code::kComm);
  });
}

TEST(ThreadCommunicator, AgreeingOnABrokenGroupKeepsTheOwnError) {
  const auto comms = ThreadCommunicators(2);
  comms[0]->set_deadline(milliseconds(1));
  const Status mine(Code::kNoSpace, "full");
  EXPECT_EQ(AgreeOnStatus(*comms[0], mine), mine);
  EXPECT_EQ(AgreeOnStatus(*comms[1], Status()).code(), Code::kTimeout);
}

}  // namespace
}  // namespace sealpoint
