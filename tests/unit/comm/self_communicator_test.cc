// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sealpoint/communicator.h"

namespace sealpoint {
namespace {

Bytes ToBytes(std::string_view text) {
  const ByteSpan bytes = AsBytes(text);
  return {bytes.begin(), bytes.end()};
}

TEST(SelfCommunicator, IsRankZeroOfOne) {
  const auto comm = SelfCommunicator();
  EXPECT_EQ(comm->rank(), 0);
  EXPECT_EQ(comm->size(), 1);
  EXPECT_FALSE(comm->host().empty());
  EXPECT_TRUE(comm->Barrier().ok());
}

TEST(SelfCommunicator, GivesBackWhatItGot) {
  const auto comm = SelfCommunicator();
  const Bytes bytes = ToBytes("abc");
  Bytes broadcast = bytes;
  ASSERT_TRUE(comm->Broadcast(broadcast, 0).ok());
  EXPECT_EQ(broadcast, bytes);
  EXPECT_EQ(comm->Gather(bytes, 0).value(), std::vector<Bytes>{bytes});
  EXPECT_EQ(comm->AllGather(bytes).value(), std::vector<Bytes>{bytes});
  EXPECT_EQ(comm->AllToAll({bytes}).value(), std::vector<Bytes>{bytes});
  EXPECT_EQ(comm->AllReduceMax({3, 1}).value(), (std::vector<std::uint64_t>{3, 1}));
}

TEST(SelfCommunicator, RefusesARootAndMessagesThatAreNotThere) {
  const auto comm = SelfCommunicator();
  Bytes bytes;
  EXPECT_EQ(comm->Broadcast(bytes, 1).code(), Code::kComm);
  EXPECT_EQ(comm->Gather(bytes, -1).error().code(), Code::kComm);
  EXPECT_EQ(comm->AllToAll({}).error().code(), Code::kComm);
}

TEST(SelfCommunicator, AgreesWithItself) {
  const auto comm = SelfCommunicator();
  EXPECT_TRUE(AgreeOnStatus(*comm, Status()).ok());
  const Status agreed = AgreeOnStatus(*comm, Status(Code::kIo, "gone"));
  EXPECT_EQ(agreed.message(), "gone");
  EXPECT_EQ(agreed.place().rank, 0);
  EXPECT_EQ(agreed.place().host, comm->host());
}

}  // namespace
}  // namespace sealpoint
