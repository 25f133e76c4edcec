// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lib/saver/check_declarations.h"
#include "lib/writer/declaration_codec.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/state/saved_state.h"

namespace sealpoint::internal::saver {
namespace {

using sealpoint::testing::ForgedCommunicator;
using sealpoint::testing::HasCode;

TEST(FullCheckDeclarations, RefusesBytesThatAreNoDeclaration) {
  ForgedCommunicator comm(std::vector<Bytes>{Bytes(3)});
  EXPECT_THAT(FullCheckDeclarations(comm, Declaration(), SavePlan(), {}, Limits()),
              HasCode(Code::kComm));
}

TEST(FullCheckDeclarations, FailsWhereTheExchangeFails) {
  ForgedCommunicator comm(Status(Code::kTimeout, "late"));
  EXPECT_THAT(FullCheckDeclarations(comm, Declaration(), SavePlan(), {}, Limits()),
              HasCode(Code::kTimeout));
}

TEST(FullCheckDeclarations, CountsTheShardsThatFormNoGrid) {
  TensorSpec tensor = sealpoint::testing::ByteTensor("w", 0);
  tensor.shape = {2, 2};
  Declaration declaration;
  for (const Box& box : {Box{{0, 0}, {1, 2}}, Box{{1, 0}, {1, 1}}, Box{{1, 1}, {1, 1}}}) {
    declaration.Add({.tensor = tensor, .region = Region::Of(box)}).value();
  }
  const auto comm = SelfCommunicator();
  const SavePlan plan = MakeSavePlan(declaration, 0, 1, {}).value();
  EXPECT_THAT(FullCheckDeclarations(*comm, declaration, plan, {}, {.box_list_shard_count_max = 2}),
              HasCode(Code::kLimitExceeded));
  EXPECT_TRUE(
      FullCheckDeclarations(*comm, declaration, plan, {}, {.box_list_shard_count_max = 3}).ok());
}

Bytes Encoded(std::size_t replica_count) {
  DeclaredTensor held{.tensor = sealpoint::testing::ByteTensor("w", 8)};
  for (std::size_t i = 0; i < replica_count; ++i) held.replicas.push_back(static_cast<int>(8 * i));
  Bytes bytes;
  WireWriter out(bytes);
  writer::EncodeDeclaredTensor(writer::ViewOf(held), out);
  return bytes;
}

// A declaration of a rank among thousands is as long as that of one among ten.
TEST(FullCheckDeclarations, ReplicasAtEqualStepsTakeTheSameRoomHoweverMany) {
  // But for numbers that are longer.
  EXPECT_LE(Encoded(1000).size(), Encoded(10).size() + 8);
  const Bytes bytes = Encoded(1000);
  WireReader in(bytes);
  EXPECT_EQ(writer::DecodeDeclaredTensor(in, 1000).value().replicas.back(), 8 * 999);
}

TEST(FullCheckDeclarations, RefusesMoreReplicasThanThereAreRanks) {
  const Bytes bytes = Encoded(1000);
  WireReader in(bytes);
  EXPECT_THAT(writer::DecodeDeclaredTensor(in, 999).status(), HasCode(Code::kComm));
}

}  // namespace
}  // namespace sealpoint::internal::saver
