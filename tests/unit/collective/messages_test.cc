// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/base/wire.h"
#include "lib/comm/status_codec.h"
#include "lib/container/open_checkpoint.h"
#include "readers/collective/chunk_request.h"
#include "readers/collective/collective_contract.h"
#include "readers/collective/exchange_chunks.h"
#include "readers/collective/requested_bytes.h"
#include "sealpoint/collective_reader.h"
#include "sealpoint/communicator.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/state/saved_state.h"

// What another rank sent is checked before it is used.

namespace sealpoint::internal::collective {
namespace {

using sealpoint::testing::ForgedCommunicator;
using sealpoint::testing::HasCode;

// What a rank reads of blob 1: chunks of 10 raw bytes at 100, 200 and 300, of which the second is
// another rank's.
class TakeRequestsTest : public ::testing::Test {
 protected:
  TakeRequestsTest() {
    for (const std::uint64_t offset : {100u, 200u, 300u}) {
      plan_.chunks.push_back({.blob = 1, .offset = offset, .stored_size = 5, .raw_size = 10});
    }
    to_read_ = {{.chunk = 0}, {.chunk = 2}};
  }
  struct Asked {
    std::uint32_t blob = 1;
    std::uint64_t offset = 100;
    std::uint64_t size = 10;  // of the parts
  };
  Status Take(const std::vector<Asked>& requests) {
    Bytes message;
    for (const Asked& asked : requests) {
      EncodeRequest({.blob = asked.blob, .offset = asked.offset}, transfer::ChunkParts(asked.size),
                    message);
    }
    return TakeRequests(message, 3, plan_, to_read_);
  }

  load::ReadPlanData plan_;
  std::vector<ChunkToRead> to_read_;
};

TEST_F(TakeRequestsTest, NotesWhoWantsWhat) {
  ASSERT_TRUE(Take({{}, {.offset = 300, .size = 4}}).ok());
  ASSERT_TRUE(Take({{.offset = 300}}).ok());
  ASSERT_EQ(to_read_[0].requesters.size(), 1u);
  ASSERT_EQ(to_read_[1].requesters.size(), 2u);
  EXPECT_EQ(to_read_[0].requesters[0].rank, 3);
  EXPECT_EQ(to_read_[1].requesters[0].parts.size_bytes(), 4u);
}

TEST_F(TakeRequestsTest, RefusesWhatThisRankDoesNotRead) {
  EXPECT_THAT(Take({{.blob = 0}}), HasCode(Code::kComm));
  EXPECT_THAT(Take({{.offset = 101}}), HasCode(Code::kComm));
  EXPECT_THAT(Take({{.offset = 200}}), HasCode(Code::kComm));
  EXPECT_THAT(Take({{.size = 11}}), HasCode(Code::kComm));
  EXPECT_THAT(Take({{}, {}}), HasCode(Code::kComm));
  EXPECT_THAT(Take({{.offset = 300}, {}}), HasCode(Code::kComm));
  EXPECT_THAT(TakeRequests(Bytes(1), 3, plan_, to_read_), HasCode(Code::kComm));
}

Bytes Numbers(const std::vector<std::uint64_t>& numbers) {
  Bytes bytes;
  WireWriter(bytes).PutAll(numbers);
  return bytes;
}

TEST(JoinRequests, RefusesRequestsThatNoRankMakes) {
  const auto join = [](const std::vector<std::uint64_t>& request) {
    ForgedCommunicator comm(std::vector<Bytes>{Numbers(request)});
    return JoinRequests(comm, {}).status();
  };
  EXPECT_TRUE(join({0, 10, 11, 1}).ok());
  EXPECT_THAT(join({0, 10, 10, 1}), HasCode(Code::kComm));
  EXPECT_THAT(join({0, 11, 10, 1}), HasCode(Code::kComm));
  EXPECT_THAT(join({0, 10, 11, 0}), HasCode(Code::kComm));
}

TEST(JoinRequests, RefusesReadersThatAreNoRanks) {
  const auto join = [](const std::vector<std::uint64_t>& joined) {
    ForgedCommunicator comm(std::vector<Bytes>{Bytes()}, std::vector<Bytes>{Numbers(joined)});
    return JoinRequests(comm, {}).status();
  };
  EXPECT_TRUE(join({1, 0, 10, 11, 0}).ok());
  EXPECT_THAT(join({1, 0, 10, 11, 1}), HasCode(Code::kComm));
  EXPECT_THAT(join({1, 0, 10, 11, 2}), HasCode(Code::kComm));
}

class CollectiveContractTest : public ::testing::Test {
 protected:
  CollectiveContractTest() {
    testing::MiniTensor tensor{.name = "w", .dtype = DType::kUInt8, .shape = {5}};
    tensor.shards.push_back({.region = testing::Slice(0, 5), .bytes = testing::NoiseBytes(1, 5)});
    testing::StoreFiles(*storage_, "ckpt", testing::BuildMini({.tensors = {tensor}}).files);
    files_.emplace(container::OpenCommitted(*storage_, "ckpt", Limits{}, false).value());
  }

  const std::shared_ptr<Storage> storage_ = MemoryStorage();
  std::optional<container::CommittedFiles> files_;
};

TEST_F(CollectiveContractTest, RefusesATensorThatIsNotInTheIndex) {
  const auto check = [&](std::uint64_t tensor) {
    Bytes bytes;
    WireWriter out(bytes);
    out.Put(tensor);
    out.Put(std::uint64_t{0});  // no region
    ForgedCommunicator comm(std::vector<Bytes>{bytes});
    return CheckContractTogether(comm, files_->index.metadata, {},
                                 {.unexpected = OnMismatch::kReport})
        .status();
  };
  EXPECT_TRUE(check(0).ok());
  EXPECT_THAT(check(1), HasCode(Code::kComm));
  EXPECT_THAT(check(2), HasCode(Code::kComm));
}

TEST_F(CollectiveContractTest, RefusesARegionOutsideOfItsTensor) {
  const auto check = [&](std::uint64_t extent) {
    Bytes bytes;
    WireWriter out(bytes);
    out.Put(std::uint64_t{0});  // the tensor
    out.Put(std::uint64_t{1});
    out.Put(std::vector<std::uint64_t>{0});
    out.Put(std::vector<std::uint64_t>{extent});
    out.Put(std::uint64_t{0});
    out.Put(extent);
    ForgedCommunicator comm(std::vector<Bytes>{bytes});
    return CheckContractTogether(comm, files_->index.metadata, {},
                                 {.unexpected = OnMismatch::kReport})
        .status();
  };
  EXPECT_TRUE(check(5).ok());
  EXPECT_THAT(check(6), HasCode(Code::kComm));
}

TEST_F(CollectiveContractTest, RefusesAVerdictOnATensorThatIsNotInTheIndex) {
  const auto check = [&](std::uint64_t tensor) {
    Bytes bytes;
    WireWriter out(bytes);
    out.Put(std::uint64_t{1});
    out.Put(tensor);
    out.Put(std::string_view("why"));
    ForgedCommunicator comm(std::vector<Bytes>{Bytes()}, std::vector<Bytes>{bytes});
    return CheckContractTogether(comm, files_->index.metadata, {}, LoadContract::Partial())
        .status();
  };
  EXPECT_THAT(check(0), HasCode(Code::kMismatch));
  EXPECT_EQ(check(0).message(), "why");
  EXPECT_THAT(check(1), HasCode(Code::kComm));
}

// What rank 0 gets of chunks of 4 bytes that it expects.
Status PassToSelf(const Bytes& message, int expected_count, std::uint64_t size = 4) {
  const auto comm = SelfCommunicator();
  ExpectedChunks expected(1);
  for (int i = 0; i < expected_count; ++i)
    expected.Add(0, {.chunk = 0, .parts = transfer::ChunkParts(size)});
  const auto take = [](const ExpectedChunk&, ByteSpan packed) { EXPECT_EQ(packed.size(), 4u); };
  Outbox outbox(nullptr, 0, 0);
  std::ranges::copy(message, outbox.Allot({message.size()}).front().begin());
  const auto received = ExchangeChunks(*comm, outbox, expected, take);
  return received.ok() ? expected.CheckAllArrived() : received.error();
}

TEST(ExchangeChunks, RefusesWhatWasNotAskedFor) {
  EXPECT_TRUE(PassToSelf(Bytes(4), 1).ok());
  EXPECT_TRUE(PassToSelf(Bytes(8), 2).ok());
  EXPECT_THAT(PassToSelf(Bytes(4), 0), HasCode(Code::kComm));
  EXPECT_THAT(PassToSelf(Bytes(4), 1, 5), HasCode(Code::kComm));
}

TEST(ExchangeChunks, RefusesLessThanWasAskedFor) {
  EXPECT_THAT(PassToSelf({}, 1), HasCode(Code::kComm));
  EXPECT_THAT(PassToSelf(Bytes(4), 2), HasCode(Code::kComm));
}

TEST(OpenNewest, RefusesAProblemThatIsNoStatus) {
  const auto open = [](ByteSpan problem) {
    Bytes choice;
    WireWriter out(choice);
    for (const std::string_view text : {"", ""}) out.Put(text);  // no checkpoint is found
    out.Put(std::uint64_t{1});
    out.Put("passed over");
    out.Put(AsText(problem));
    choice.push_back(std::byte{1});  // as rank 0 sends what is no error
    ForgedCommunicator comm(std::vector<Bytes>{}, {}, choice);
    return OpenNewest(comm, "run", {.open = {.storage = MemoryStorage()}}).status();
  };
  EXPECT_TRUE(open(comm::EncodeStatus(Status(Code::kCorrupt, "damaged"))).ok());
  EXPECT_THAT(open(Bytes(3)), HasCode(Code::kComm));
}

}  // namespace
}  // namespace sealpoint::internal::collective
