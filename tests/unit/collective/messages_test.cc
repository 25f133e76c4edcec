// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <limits>
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
#include "sealpoint/communicator.h"
#include "sealpoint/open_newest.h"
#include "tests/support/container/mini_container.h"
#include "tests/support/ranks/forged_communicator.h"
#include "tests/support/state/saved_state.h"

// What another rank sent is checked before it is used.

namespace sealpoint::internal {
namespace {

using sealpoint::testing::ForgedCommunicator;
using sealpoint::testing::HasCode;

struct WireSlice {
  std::uint64_t blob = 0;
  std::uint64_t tensor = 0;
  std::uint64_t offset = 128;
  std::uint64_t stored_size = 5;
  std::uint64_t raw_size = 5;
  std::uint64_t element_size = 1;
};

class ChunkRequestTest : public ::testing::Test {
 protected:
  ChunkRequestTest() {
    testing::MiniTensor tensor{.name = "w", .dtype = DType::kUInt8, .shape = {5}};
    tensor.shards.push_back({.region = testing::Slice(0, 5), .bytes = testing::NoiseBytes(1, 5)});
    testing::MiniSpec spec{.tensors = {tensor}};
    // The index alone is used here, and it may tell of a large blob.
    spec.hooks.pin = [](int, BlobPin& pin) { pin.file_size += kChunkSizeMaxBytes; };
    spec.hooks.marker = [](Marker& marker) { marker.total_bytes += kChunkSizeMaxBytes; };
    testing::StoreFiles(*storage_, "ckpt", testing::BuildMini(spec).files);
    files_.emplace(OpenCommitted(*storage_, "ckpt", Limits{}, false).value());
  }

  Status Check(const std::function<void(WireSlice&)>& change) {
    WireSlice slice;
    change(slice);
    Bytes bytes;
    WireWriter out(bytes);
    for (const std::uint64_t number : {slice.blob, slice.tensor, slice.offset, slice.stored_size,
                                       slice.raw_size, std::uint64_t{0}, slice.element_size}) {
      out.Put(number);
    }
    out.Put(Digest());
    out.Put(Digest());
    ChunkParts(slice.raw_size).Encode(out);
    return DecodeRequests(bytes, files_->index.contents).status();
  }

  const std::shared_ptr<Storage> storage_ = MemoryStorage();
  std::optional<CommittedFiles> files_;
};

TEST_F(ChunkRequestTest, TakesWhatTheCheckpointMayHold) {
  EXPECT_TRUE(Check([](WireSlice&) {}).ok());
  EXPECT_TRUE(Check([](WireSlice& slice) { slice.raw_size = kChunkSizeMaxBytes; }).ok());
  EXPECT_TRUE(Check([](WireSlice& slice) { slice.raw_size = 1; }).ok());
  EXPECT_TRUE(Check([](WireSlice& slice) { slice.stored_size = 1; }).ok());
  EXPECT_TRUE(Check([](WireSlice& slice) { slice.stored_size = kChunkSizeMaxBytes; }).ok());
  EXPECT_TRUE(Check([](WireSlice& slice) { slice.element_size = 256; }).ok());
}

TEST_F(ChunkRequestTest, RefusesWhatItCannotHold) {
  const std::vector<std::function<void(WireSlice&)>> changes = {
      [](WireSlice& slice) { slice.blob = 1; },
      [](WireSlice& slice) { slice.tensor = 1; },
      [](WireSlice& slice) { slice.stored_size = 0; },
      [](WireSlice& slice) { slice.stored_size = kChunkSizeMaxBytes + 1; },
      [](WireSlice& slice) { slice.offset = kChunkSizeMaxBytes + kMiB; },
      [](WireSlice& slice) { slice.raw_size = 0; },
      [](WireSlice& slice) { slice.raw_size = kChunkSizeMaxBytes + 1; },
      [](WireSlice& slice) { slice.element_size = 257; },
      [](WireSlice& slice) { slice.offset = std::numeric_limits<std::uint64_t>::max(); },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    EXPECT_THAT(Check(changes[i]), HasCode(Code::kComm)) << i;
  }
}

using CollectiveContractTest = ChunkRequestTest;

TEST_F(CollectiveContractTest, RefusesATensorThatIsNotInTheIndex) {
  const auto check = [&](std::uint64_t tensor) {
    Bytes bytes;
    WireWriter out(bytes);
    out.Put(tensor);
    out.Put(std::uint64_t{0});  // no region
    ForgedCommunicator comm(std::vector<Bytes>{bytes});
    return CheckContractTogether(comm, files_->index.contents, {},
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
    return CheckContractTogether(comm, files_->index.contents, {},
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
    return CheckContractTogether(comm, files_->index.contents, {}, LoadContract::Partial())
        .status();
  };
  EXPECT_THAT(check(0), HasCode(Code::kMismatch));
  EXPECT_EQ(check(0).message(), "why");
  EXPECT_THAT(check(1), HasCode(Code::kComm));
}

Status PassToSelf(std::vector<Bytes> held, std::vector<ExpectedChunk> expected) {
  const auto comm = SelfCommunicator();
  RequestedChunks requested;
  requested.requesters.assign(held.size(), {{.rank = 0, .parts = ChunkParts(4)}});
  return ExchangeChunks(*comm, requested, std::move(held), {std::move(expected)}, 100,
                        [](const ExpectedChunk&, ByteSpan packed) { EXPECT_EQ(packed.size(), 4u); })
      .status();
}

TEST(ExchangeChunks, RefusesWhatWasNotAskedFor) {
  EXPECT_TRUE(PassToSelf({Bytes(4)}, {{.chunk = 0, .parts = ChunkParts(4)}}).ok());
  EXPECT_THAT(PassToSelf({Bytes(4)}, {}), HasCode(Code::kComm));
  EXPECT_THAT(PassToSelf({Bytes(4)}, {{.chunk = 0, .parts = ChunkParts(5)}}), HasCode(Code::kComm));
}

TEST(ExchangeChunks, RefusesLessThanWasAskedFor) {
  EXPECT_THAT(PassToSelf({}, {{.chunk = 0, .parts = ChunkParts(4)}}), HasCode(Code::kComm));
}

TEST(OpenNewest, RefusesAProblemThatIsNoStatus) {
  const auto open = [](ByteSpan problem) {
    Bytes choice;
    WireWriter out(choice);
    for (const std::string_view text : {"run", "", ""}) out.Put(text);  // no checkpoint is found
    out.Put(std::uint64_t{1});
    out.Put("passed over");
    out.Put(AsText(problem));
    choice.push_back(std::byte{1});  // as rank 0 sends what is no error
    ForgedCommunicator comm(std::vector<Bytes>{}, {}, choice);
    return OpenNewest(comm, "run", {.open = {.storage = MemoryStorage()}}).status();
  };
  EXPECT_TRUE(open(EncodeStatus(Status(Code::kCorrupt, "damaged"))).ok());
  EXPECT_THAT(open(Bytes(3)), HasCode(Code::kComm));
}

}  // namespace
}  // namespace sealpoint::internal
