// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/agree_on_declarations.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/writer/declaration_codec.h"
#include "tests/support/saved_state.h"

namespace sealpoint::internal {
namespace {

using sealpoint::testing::HasCode;

// One rank whose messages to itself arrive as it was told.
class AlteringCommunicator final : public Communicator {
 public:
  explicit AlteringCommunicator(Result<std::vector<Bytes>> arriving)
      : arriving_(std::move(arriving)) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  const std::string& host() const override { return self_->host(); }
  void set_deadline(std::chrono::milliseconds) override {}
  Status Barrier() override { return {}; }
  Status Broadcast(Bytes& bytes, int root) override { return self_->Broadcast(bytes, root); }
  Result<std::vector<Bytes>> Gather(ByteSpan bytes, int root) override {
    return self_->Gather(bytes, root);
  }
  Result<std::vector<Bytes>> AllGather(ByteSpan bytes) override { return self_->AllGather(bytes); }
  Result<std::vector<Bytes>> AllToAll(const std::vector<Bytes>&) override { return arriving_; }
  Result<std::vector<std::uint64_t>> AllReduceMax(
      const std::vector<std::uint64_t>& values) override {
    return self_->AllReduceMax(values);
  }

 private:
  const std::unique_ptr<Communicator> self_ = SelfCommunicator();
  const Result<std::vector<Bytes>> arriving_;
};

TEST(AgreeOnDeclarations, RefusesBytesThatAreNoDeclaration) {
  AlteringCommunicator comm(std::vector<Bytes>{Bytes(3)});
  EXPECT_THAT(AgreeOnDeclarations(comm, Declaration(), {}, Limits()), HasCode(Code::kComm));
}

TEST(AgreeOnDeclarations, FailsWhereTheExchangeFails) {
  AlteringCommunicator comm(Status(Code::kTimeout, "late"));
  EXPECT_THAT(AgreeOnDeclarations(comm, Declaration(), {}, Limits()), HasCode(Code::kTimeout));
}

Bytes Encoded(std::size_t replica_count) {
  HeldTensor held{.tensor = sealpoint::testing::ByteTensor("w", 8)};
  for (std::size_t i = 0; i < replica_count; ++i) held.replicas.push_back(static_cast<int>(8 * i));
  Bytes bytes;
  WireWriter out(bytes);
  EncodeHeldTensor(held, out);
  return bytes;
}

// A declaration of a rank among thousands is as long as that of one among ten.
TEST(AgreeOnDeclarations, ReplicasAtEqualStepsTakeTheSameRoomHoweverMany) {
  EXPECT_EQ(Encoded(10).size(), Encoded(1000).size());
  const Bytes bytes = Encoded(1000);
  WireReader in(bytes);
  EXPECT_EQ(DecodeHeldTensor(in, 1000).value().replicas.back(), 8 * 999);
}

TEST(AgreeOnDeclarations, RefusesMoreReplicasThanThereAreRanks) {
  const Bytes bytes = Encoded(1000);
  WireReader in(bytes);
  EXPECT_THAT(DecodeHeldTensor(in, 999).status(), HasCode(Code::kComm));
}

}  // namespace
}  // namespace sealpoint::internal
