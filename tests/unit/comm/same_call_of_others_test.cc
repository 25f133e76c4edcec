// SPDX-License-Identifier: Apache-2.0
//
// What another version of the library could send; what ranks of this one send:
// tests/mpi/same_call_test.cc.
#include <gtest/gtest.h>

#include <vector>

#include "lib/comm/same_call.h"
#include "sealpoint/detail/agreement.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/ranks/with_ranks.h"

namespace sealpoint::internal::comm {
namespace {

TEST(SameCall, RefusesAReductionOfAnotherLength) {
  sealpoint::testing::ForgedCommunicator comm(std::vector<Bytes>{});
  comm.ForgeReduction(1);
  EXPECT_EQ(BeginCall(comm, {.kind = "save"}).status().code(), Code::kComm);
  EXPECT_TRUE(BeginCall(comm, {.kind = "save"}).ok());
}

TEST(SameCall, IsNotComparedTwice) {
  sealpoint::testing::ForgedCommunicator comm(std::vector<Bytes>{});
  comm.ForgeReduction(1);
  comm.CompareCalls();
  EXPECT_TRUE(CheckSameCall(comm, {.kind = "opening"}).ok());
  EXPECT_FALSE(comm.has_forged_reduction());
}

TEST(SameCall, OfAnotherProgramIsMalformed) {
  EXPECT_EQ(detail::CompareCalls(std::vector<Bytes>{Bytes(2)}).code(), Code::kComm);
  EXPECT_EQ(detail::DecodeError(Bytes(3)).code(), Code::kComm);
  EXPECT_EQ(detail::DecodeError(detail::EncodeError({})).code(), Code::kComm);
}

TEST(SameCall, OneKindWithMoreArgumentsIsAnotherCall) {
  sealpoint::testing::WithRanks(2, [](Communicator& comm) {
    CollectiveCall call{.kind = "save", .arguments = {{"path", "a"}}};
    if (comm.rank() == 1) call.arguments.push_back({"step", "1"});
    EXPECT_EQ(BeginCall(comm, call).status().code(), Code::kInvalidArgument);
  });
}

}  // namespace
}  // namespace sealpoint::internal::comm
