// SPDX-License-Identifier: Apache-2.0
#include "tests/support/container/rule_matchers.h"
#include "tests/unit/load/load_fixture.h"

namespace sealpoint::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

MiniSpec Described() {
  MiniSpec spec;
  spec.parent = MiniSpec::MakeId(0x11);
  spec.sequence = 5;
  spec.step = 42;
  spec.created_unix_ns = 99;
  spec.mesh = {{"data", 2}};
  spec.provenance = {{"framework", "none"}};
  spec.tensors.push_back(CutTensor("b", DType::kF32, {4, 2}, NoiseBytes(1, 32),
                                   {Region::Of({{0, 0}, {2, 2}}), Region::Of({{2, 0}, {2, 2}})},
                                   {0, 1}));
  spec.tensors.back().placement = {"data: shard dim 0"};
  spec.tensors.push_back(CutTensor("a", DType::kInt8, {3}, NoiseBytes(2, 3), {Region::Whole({3})}));
  spec.objects.push_back(
      {.name = "rng", .bytes = NoiseBytes(3, 10000), .media_type = "application/x-rng"});
  spec.objects.push_back({.name = "empty", .bytes = {}});
  return spec;
}

class CheckpointTest : public LoadFixture {};

TEST_F(CheckpointTest, TellsWhatTheMarkerAndTheIndexSay) {
  Open(Described());
  EXPECT_EQ(checkpoint_->path(), "c");
  EXPECT_EQ(checkpoint_->attempt(), container_.attempt);
  EXPECT_EQ(checkpoint_->parent(), MiniSpec::MakeId(0x11));
  EXPECT_EQ(checkpoint_->sequence(), 5u);
  EXPECT_EQ(checkpoint_->step(), 42u);
  EXPECT_EQ(checkpoint_->created_unix_ns(), 99u);
  EXPECT_EQ(checkpoint_->raw_bytes(), 32u + 3 + 10000);
  EXPECT_EQ(checkpoint_->mesh(), Described().mesh);
  EXPECT_EQ(checkpoint_->provenance(), Described().provenance);
  ASSERT_THAT(checkpoint_->blobs(), SizeIs(2));
  EXPECT_EQ(checkpoint_->blobs()[1].id, container_.blobs.at(1).id);
  EXPECT_EQ(checkpoint_->blobs()[1].chunk_count, 1u);
}

TEST_F(CheckpointTest, DescribesTensorsByName) {
  Open(Described());
  const TensorInfo b{.name = "b",
                     .dtype = DType::kF32,
                     .element_size = 4,
                     .shape = {4, 2},
                     .chunk_size_bytes = 4096,
                     .raw_bytes = 32,
                     .shard_count = 2,
                     .placement = {"data: shard dim 0"}};
  ASSERT_THAT(checkpoint_->tensors(), SizeIs(2));
  EXPECT_EQ(checkpoint_->tensors()[0].name, "a");
  EXPECT_EQ(checkpoint_->tensor(1), b);
  EXPECT_EQ(checkpoint_->FindTensor("b"), b);
  EXPECT_EQ(checkpoint_->FindTensor("c"), std::nullopt);
  EXPECT_EQ(checkpoint_->FindObject("c"), std::nullopt);
  const std::vector<ShardInfo> shards = {{Region::Of({{0, 0}, {2, 2}}), container_.blobs.at(0).id},
                                         {Region::Of({{2, 0}, {2, 2}}), container_.blobs.at(1).id}};
  EXPECT_EQ(checkpoint_->Shards("b").value(), shards);
  EXPECT_EQ(checkpoint_->Shards("c").status().code(), Code::kNotFound);
}

TEST_F(CheckpointTest, CountsTheChunksOfATensor) {
  Open(Described());
  EXPECT_EQ(checkpoint_->TensorChunks("b").value().chunk_count, 2u);
  EXPECT_EQ(checkpoint_->TensorChunks("c").status().code(), Code::kNotFound);
}

TEST_F(CheckpointTest, AMissingTableIsAnErrorOfTheCountOfChunks) {
  for (const int blob : {0, 1}) {
    Open(Described());
    ReplaceFile(*memory_, "c", container_.blobs.at(blob).name, nullptr);
    const Status error = checkpoint_->TensorChunks("b").status();
    EXPECT_FALSE(error.ok()) << blob;
    EXPECT_EQ(error.place().tensor, "b");
    EXPECT_EQ(error.place().path, BlobPath(blob));
  }
}

TEST_F(CheckpointTest, APatternOfObjectsMatchesAtLeastOne) {
  Open(Described());
  EXPECT_THAT(checkpoint_->MatchObjects({"r*"}).value(), SizeIs(1));
  const Status error = checkpoint_->MatchObjects({"r*", "x*"}).status();
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.place().object, "x*");
}

TEST_F(CheckpointTest, OpensFromBytesOfAnother) {
  Open(Described());
  const ByteSpan marker = checkpoint_->marker_bytes();
  const ByteSpan index = checkpoint_->index_bytes();
  const auto other = Checkpoint::OpenFrom("c", Bytes(marker.begin(), marker.end()),
                                          Bytes(index.begin(), index.end()), {.storage = storage_});
  ASSERT_TRUE(other.ok());
  EXPECT_THAT(storage_->log().reads, IsEmpty());
  EXPECT_EQ((*other)->ReadObject("rng").value(), NoiseBytes(3, 10000));
}

TEST_F(CheckpointTest, ReadsObjects) {
  Open(Described());
  EXPECT_EQ(checkpoint_->FindObject("rng"),
            (ObjectInfo{.name = "rng", .media_type = "application/x-rng", .size_bytes = 10000}));
  EXPECT_EQ(checkpoint_->ReadObject("rng").value(), NoiseBytes(3, 10000));
  EXPECT_THAT(checkpoint_->ReadObject("empty").value(), IsEmpty());
  EXPECT_EQ(checkpoint_->ReadObject("none").status().code(), Code::kNotFound);
  EXPECT_THAT(checkpoint_->objects(), SizeIs(2));
}

TEST_F(CheckpointTest, ReadsCodedObjects) {
  MiniSpec spec;
  spec.objects.push_back({.name = "zeros", .bytes = Bytes(100000), .codec = Codec::kZstd});
  Open(spec);
  EXPECT_EQ(checkpoint_->ReadObject("zeros").value(), Bytes(100000));
}

TEST_F(CheckpointTest, DamagedObjectIsCorrupt) {
  Open(Described(), [](MiniContainer& container) {
    const MiniBlob& blob = container.blobs.at(0);
    container.blob(0)[blob.records.back().offset] ^= std::byte{1};
  });
  const Status error = checkpoint_->ReadObject("rng").status();
  EXPECT_THAT(error,
              BreaksRule(Code::kCorrupt, "R-CHK-02", container_.blobs.at(0).records.back().offset));
  EXPECT_EQ(error.place().object, "rng");
  EXPECT_EQ(error.place().tensor, "");
  EXPECT_EQ(error.place().path, BlobPath(0));
}

TEST_F(CheckpointTest, ErrorsOfOpeningComeThrough) {
  MiniContainer container = BuildMini(Described());
  container.files.erase("COMMIT");
  StoreFiles(*memory_, "c", container.files);
  EXPECT_EQ(Checkpoint::Open("c", {.storage = memory_}).status().code(), Code::kUncommitted);
}

}  // namespace
}  // namespace sealpoint::testing
