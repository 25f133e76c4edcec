// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/metadata/merge_manifests.h"
#include "tests/support/container/encode_manifest.h"

namespace sealpoint::internal::metadata {
namespace {

using sealpoint::testing::EncodeManifest;
using sealpoint::testing::ManifestShard;
using sealpoint::testing::ManifestTensor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Region BoxAt(std::vector<std::uint64_t> offset, std::vector<std::uint64_t> extent) {
  return Region::Of(Box{.offset = std::move(offset), .extent = std::move(extent)});
}

ManifestTensor FloatTensor(std::string name, Shape shape, std::vector<ManifestShard> shards) {
  return ManifestTensor{.name = std::move(name),
                        .dtype = DType::kF32,
                        .element_size = 4,
                        .chunk_size = 4096,
                        .shape = std::move(shape),
                        .shards = std::move(shards)};
}

// One blob: what it holds and its decoded manifest.
struct Held {
  BlobPin pin;
  Metadata manifest;
};

Held Hold(std::uint8_t id, std::vector<ManifestTensor> tensors, std::vector<ManifestObject> objects,
          std::uint32_t records, std::uint32_t shards) {
  const auto bytes =
      std::make_shared<const Bytes>(EncodeManifest(std::move(tensors), std::move(objects)));
  auto manifest = Metadata::DecodeManifest(
      bytes, ByteSpan(*bytes), {.record_count = records, .shard_count = shards}, Limits{});
  BlobPin pin{.file_size = 8192,
              .table_offset = records == 0 ? 128u : 4096u,
              .record_count = records,
              .shard_count = shards};
  pin.id.bytes[0] = std::byte{id};
  pin.group_list_digest.bytes[3] = std::byte{id};
  pin.trailer_digest.bytes[5] = std::byte{id};
  return Held{.pin = pin, .manifest = std::move(manifest).value()};
}

Result<Bytes> Merge(const std::vector<const Held*>& blobs, const IndexAttributes& facts = {},
                    const Limits& limits = {}) {
  std::vector<BlobContribution> contributions;
  for (const Held* blob : blobs) contributions.push_back({blob->pin, &blob->manifest});
  return EncodeIndex(contributions, facts, limits);
}

Metadata MergeAndDecode(const std::vector<const Held*>& blobs, const IndexAttributes& facts = {}) {
  const auto bytes = std::make_shared<const Bytes>(Merge(blobs, facts).value());
  return Metadata::Decode(MetadataKind::kIndex, bytes, ByteSpan(*bytes), Limits{}).value();
}

Held RowsInFirst() {
  return Hold(
      1, {FloatTensor("w", {4, 6}, {{BoxAt({2, 0}, {2, 6}), 1}, {BoxAt({0, 0}, {1, 6}), 0}})},
      {{.name = "rng", .media_type = "x", .size = 5, .chunk_size = 4096, .first_record = 2}}, 3, 3);
}
Held RowsInSecond() {
  return Hold(2, {FloatTensor("w", {4, 6}, {{BoxAt({1, 0}, {1, 6}), 0}})}, {}, 1, 1);
}

TEST(Metadata, ManifestGivesBackWhatWasDeclared) {
  const Held held = RowsInFirst();
  ASSERT_EQ(held.manifest.tensor_count(), 1u);
  const TensorView tensor = held.manifest.tensor(0);
  EXPECT_EQ(tensor.name(), "w");
  EXPECT_EQ(tensor.dtype(), DType::kF32);
  EXPECT_EQ(tensor.element_size(), 4u);
  EXPECT_EQ(tensor.chunk_size(), 4096u);
  EXPECT_EQ(tensor.shape(), (Shape{4, 6}));
  EXPECT_EQ(tensor.element_count(), 24u);
  EXPECT_FALSE(tensor.is_grid());
  EXPECT_THAT(tensor.regions(), ElementsAre(BoxAt({0, 0}, {1, 6}), BoxAt({2, 0}, {2, 6})));
  EXPECT_EQ(tensor.shard_ref(1), (ShardRef{.blob = 0, .first_record = 1}));
  ASSERT_EQ(held.manifest.object_count(), 1u);
  EXPECT_EQ(held.manifest.object(0).size(), 5u);
  EXPECT_EQ(held.manifest.blob_count(), 0u);
  EXPECT_EQ(held.manifest.total_shard_count(), 3u);
}

TEST(Metadata, IndexGivesBackItsFacts) {
  const Held first = RowsInFirst();
  const Held second = RowsInSecond();
  const IndexAttributes facts{.created_unix_ns = 77,
                              .mesh = {{"data", 4}, {"alpha", 2}},
                              .provenance = {{"user", "ada"}, {"host", "n1"}}};
  const Metadata index = MergeAndDecode({&first, &second}, facts);
  EXPECT_EQ(index.created_unix_ns(), 77u);
  EXPECT_EQ(index.raw_bytes(), 24u * 4 + 5);
  EXPECT_EQ(index.digest_algorithm(), DigestAlgorithm::kXxh3_128);
  EXPECT_THAT(index.mesh(), ElementsAre(Pair("data", 4), Pair("alpha", 2)));
  EXPECT_THAT(index.provenance(), ElementsAre(Pair("host", "n1"), Pair("user", "ada")));
  ASSERT_EQ(index.blob_count(), 2u);
  EXPECT_EQ(index.blob(0), first.pin);
  EXPECT_EQ(index.blob(1), second.pin);
  EXPECT_EQ(index.total_shard_count(), 4u);
}

TEST(Metadata, ShardsOfTwoBlobsBecomeOneGrid) {
  const Held first = RowsInFirst();
  const Held second = RowsInSecond();
  const Metadata index = MergeAndDecode({&second, &first});
  const TensorView tensor = index.tensor(0);
  EXPECT_TRUE(tensor.is_grid());
  EXPECT_THAT(tensor.regions(),
              ElementsAre(BoxAt({0, 0}, {1, 6}), BoxAt({1, 0}, {1, 6}), BoxAt({2, 0}, {2, 6})));
  EXPECT_EQ(tensor.shard_ref(0), (ShardRef{.blob = 0, .first_record = 0}));
  EXPECT_EQ(tensor.shard_ref(1), (ShardRef{.blob = 1, .first_record = 0}));
  EXPECT_EQ(tensor.shard_ref(2), (ShardRef{.blob = 0, .first_record = 1}));
}

TEST(Metadata, BytesDoNotDependOnTheOrderOfBlobsOrShards) {
  const Held first = RowsInFirst();
  const Held second = RowsInSecond();
  EXPECT_EQ(*Merge({&first, &second}), *Merge({&second, &first}));
  const auto encode = [](std::vector<ManifestShard> shards) {
    return EncodeManifest({FloatTensor("w", {4}, std::move(shards))}, {});
  };
  EXPECT_EQ(encode({{BoxAt({0}, {1}), 0}, {BoxAt({2}, {1}), 1}}),
            encode({{BoxAt({2}, {1}), 1}, {BoxAt({0}, {1}), 0}}));
}

TEST(Metadata, EmptyTensorInTwoBlobsComesOnce) {
  const Held first = Hold(1, {FloatTensor("e", {0, 3}, {})}, {}, 0, 0);
  const Held second = Hold(2, {FloatTensor("e", {0, 3}, {})}, {}, 0, 0);
  const Metadata index = MergeAndDecode({&first, &second});
  ASSERT_EQ(index.tensor_count(), 1u);
  EXPECT_EQ(index.tensor(0).shard_count(), 0u);
  EXPECT_TRUE(index.tensor(0).regions().empty());
  EXPECT_TRUE(index.tensor(0).ShardsTouching(Box{{0, 0}, {0, 3}}).empty());
  EXPECT_EQ(index.raw_bytes(), 0u);
}

TEST(Metadata, EmptyTensorsMustAgree) {
  const Held first = Hold(1, {FloatTensor("e", {0, 3}, {})}, {}, 0, 0);
  const Held second = Hold(2, {FloatTensor("e", {0, 4}, {})}, {}, 0, 0);
  const Status status = Merge({&first, &second}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.place().tensor, "e");
  EXPECT_THAT(status.message(),
              HasSubstr("shape is [0, 3] in blob 01000000000000000000000000000000"));
}

TEST(Metadata, EmptyObjectRefersToNoBlob) {
  const Held first =
      Hold(1, {}, {{.name = "a", .media_type = "x", .size = 1, .chunk_size = 4096}}, 1, 1);
  const Held second = Hold(
      2, {}, {{.name = "b", .media_type = "x", .size = 0, .chunk_size = 4096, .first_record = 9}},
      0, 0);
  const Metadata index = MergeAndDecode({&first, &second});
  EXPECT_EQ(index.object(1).shard_ref(), ShardRef{});
  EXPECT_EQ(index.blob(1).record_count, 0u);
}

TEST(Metadata, IndexOfNoBlobs) {
  const Metadata index = MergeAndDecode({});
  EXPECT_EQ(index.tensor_count(), 0u);
  EXPECT_EQ(index.blob_count(), 0u);
}

TEST(Metadata, ZeroDimensionalTensor) {
  const Held held = Hold(1, {FloatTensor("s", {}, {{BoxAt({}, {}), 0}})}, {}, 1, 1);
  const Metadata index = MergeAndDecode({&held});
  EXPECT_TRUE(index.tensor(0).is_grid());
  EXPECT_THAT(index.tensor(0).regions(), ElementsAre(BoxAt({}, {})));
  EXPECT_THAT(index.tensor(0).ShardsTouching(Box{}), ElementsAre(Pair(0, BoxAt({}, {}))));
}

TEST(Metadata, FindsEveryNameAndNoOther) {
  std::vector<ManifestTensor> tensors;
  for (char c = 'a'; c <= 'g'; ++c) tensors.push_back(FloatTensor(std::string(1, c), {0}, {}));
  const Held held = Hold(1, std::move(tensors), {}, 0, 0);
  for (std::size_t i = 0; i < 7; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    EXPECT_EQ(held.manifest.FindTensor(name), i);
    EXPECT_EQ(held.manifest.FindTensor(name + "x"), std::nullopt);
  }
  EXPECT_EQ(held.manifest.FindTensor("A"), std::nullopt);
  EXPECT_EQ(held.manifest.FindObject("a"), std::nullopt);
}

TEST(Metadata, PlacementIsThatOfTheFirstBlobThatHasOne) {
  ManifestTensor with = FloatTensor("e", {0}, {});
  with.placement = {"tensor: shard dim 0", "data: replicate"};
  const Held first = Hold(1, {FloatTensor("e", {0}, {})}, {}, 0, 0);
  const Held second = Hold(2, {with}, {}, 0, 0);
  EXPECT_EQ(MergeAndDecode({&first, &second}).tensor(0).placement(), with.placement);
}

TEST(Metadata, HoleNamesItsElement) {
  const Held first = RowsInFirst();
  const Status status = Merge({&first}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.place().tensor, "w");
  EXPECT_THAT(status.message(), HasSubstr("no shard holds element [1, 0]"));
}

TEST(Metadata, OverlapNamesItsElementAndBlobs) {
  const Held first = RowsInFirst();
  const Held second = Hold(2, {FloatTensor("w", {4, 6}, {{BoxAt({1, 0}, {2, 6}), 0}})}, {}, 1, 1);
  const Status status = Merge({&first, &second}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("element [2, 0] is in 2 shards"));
  EXPECT_THAT(status.message(), HasSubstr("blob " + first.pin.id.ToHex()));
  EXPECT_THAT(status.message(), HasSubstr("blob " + second.pin.id.ToHex()));
}

TEST(Metadata, TensorsMustAgree) {
  const Held first = RowsInFirst();
  const auto merge_with = [&](auto change) {
    ManifestTensor tensor = FloatTensor("w", {4, 6}, {{BoxAt({1, 0}, {1, 6}), 0}});
    change(&tensor);
    const Held second = Hold(2, {tensor}, {}, 1, 1);
    return Merge({&first, &second}).status();
  };
  EXPECT_TRUE(merge_with([](ManifestTensor*) {}).ok());
  EXPECT_THAT(merge_with([](ManifestTensor* t) { t->dtype = DType::kInt32; }).message(),
              HasSubstr("dtype is f32 in blob"));
  EXPECT_THAT(merge_with([](ManifestTensor* t) { t->chunk_size = 8192; }).message(),
              HasSubstr("chunk size is 4096 in blob"));
  EXPECT_THAT(merge_with([](ManifestTensor* t) { t->shape = {4, 7}; }).message(),
              HasSubstr("shape is [4, 6] in blob"));
}

TEST(Metadata, ElementSizesOfAnUnregisteredDTypeMustAgree) {
  ManifestTensor tensor = FloatTensor("e", {0}, {});
  tensor.dtype = DType{999};
  const Held first = Hold(1, {tensor}, {}, 0, 0);
  tensor.element_size = 8;
  const Held second = Hold(2, {tensor}, {}, 0, 0);
  EXPECT_THAT(Merge({&first, &second}).status().message(), HasSubstr("element size is 4 in blob"));
}

TEST(Metadata, ObjectInTwoBlobs) {
  const std::vector<ManifestObject> object{
      {.name = "rng", .media_type = "x", .size = 1, .chunk_size = 4096}};
  const Held first = Hold(1, {}, object, 1, 1);
  const Held second = Hold(2, {}, object, 1, 1);
  const Status status = Merge({&first, &second}).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.place().object, "rng");
  EXPECT_EQ(status.place().tensor, "");
}

TEST(Metadata, SameBlobTwice) {
  const Held held = Hold(1, {}, {}, 0, 0);
  EXPECT_EQ(Merge({&held, &held}).status().code(), Code::kInvalidArgument);
}

TEST(Metadata, LimitsHoldForTheMerge) {
  const Held first = RowsInFirst();
  const Held second = RowsInSecond();
  const auto code = [&](const Limits& limits) {
    return Merge({&first, &second}, {}, limits).status().code();
  };
  EXPECT_EQ(code(Limits{.index_size_max_bytes = 512}), Code::kLimitExceeded);
  EXPECT_EQ(code(Limits{.blob_count_max = 1}), Code::kLimitExceeded);
  EXPECT_EQ(code(Limits{.shard_count_max = 3}), Code::kLimitExceeded);
  EXPECT_EQ(code(Limits{.blob_count_max = 2}), Code::kOk);
  const std::uint64_t shards =
      first.manifest.total_shard_count() + second.manifest.total_shard_count();
  EXPECT_EQ(code(Limits{.shard_count_max = shards - 1}), Code::kLimitExceeded);
  EXPECT_EQ(code(Limits{.shard_count_max = shards}), Code::kOk);
}

// 4 x 4 laid as bricks.
Held Bricks() {
  return Hold(1,
              {FloatTensor("b", {4, 4},
                           {{BoxAt({0, 0}, {2, 1}), 0},
                            {BoxAt({0, 1}, {2, 3}), 1},
                            {BoxAt({2, 0}, {2, 3}), 2},
                            {BoxAt({2, 3}, {2, 1}), 3}})},
              {}, 4, 4);
}

TEST(Metadata, BoxListLimitHoldsForTheMerge) {
  const Held held = Bricks();
  EXPECT_EQ(Merge({&held}, {}, Limits{.box_list_shard_count_max = 3}).status().code(),
            Code::kLimitExceeded);
  EXPECT_TRUE(Merge({&held}, {}, Limits{.box_list_shard_count_max = 4}).ok());
}

TEST(Metadata, ShardsTouchingABoxOfABoxList) {
  const Held held = Bricks();
  const Metadata index = MergeAndDecode({&held});
  EXPECT_FALSE(index.tensor(0).is_grid());
  EXPECT_THAT(index.tensor(0).ShardsTouching(Box{{1, 0}, {2, 1}}),
              ElementsAre(Pair(0, BoxAt({0, 0}, {2, 1})), Pair(2, BoxAt({2, 0}, {2, 3}))));
}

TEST(Metadata, ShardsTouchingABoxOfAGrid) {
  std::vector<ManifestShard> shards;
  for (std::uint64_t row = 0; row < 3; ++row) {
    for (std::uint64_t column = 0; column < 2; ++column) {
      shards.push_back(
          {BoxAt({row * 2, column * 3}, {2, 3}), static_cast<std::uint32_t>(shards.size())});
    }
  }
  const Held held = Hold(1, {FloatTensor("g", {6, 6}, shards)}, {}, 6, 6);
  const Metadata index = MergeAndDecode({&held});
  EXPECT_THAT(index.tensor(0).ShardsTouching(Box{{2, 3}, {2, 1}}),
              ElementsAre(Pair(3, BoxAt({2, 3}, {2, 3}))));
  EXPECT_THAT(index.tensor(0).ShardsTouching(Box{{1, 0}, {2, 3}}),
              ElementsAre(Pair(0, BoxAt({0, 0}, {2, 3})), Pair(2, BoxAt({2, 0}, {2, 3}))));
  EXPECT_EQ(index.tensor(0).ShardsTouching(Box{{0, 0}, {6, 6}}).size(), 6u);
}

TEST(Metadata, ShardsTouchingABoxOfARunGrid) {
  const Box left{{0, 0}, {4, 2}};
  const Box right{{0, 2}, {4, 2}};
  const std::vector<ManifestShard> shards{
      {Region{left, {0, 3}}, 0}, {Region{left, {3, 8}}, 1}, {Region{right, {0, 8}}, 2}};
  const Held held = Hold(1, {FloatTensor("r", {4, 4}, shards)}, {}, 3, 3);
  const Metadata index = MergeAndDecode({&held});
  EXPECT_TRUE(index.tensor(0).is_grid());
  EXPECT_THAT(index.tensor(0).regions(),
              ElementsAre(shards[0].region, shards[1].region, shards[2].region));
  EXPECT_THAT(index.tensor(0).ShardsTouching(Box{{2, 0}, {1, 2}}),
              ElementsAre(Pair(1, shards[1].region)));
  EXPECT_THAT(index.tensor(0).ShardsTouching(Box{{0, 2}, {1, 1}}),
              ElementsAre(Pair(2, shards[2].region)));
}

TEST(Metadata, ViewsOutliveTheOwnersOtherReferences) {
  const Held held = Bricks();
  auto bytes = std::make_shared<const Bytes>(Merge({&held}).value());
  const Metadata index =
      Metadata::Decode(MetadataKind::kIndex, bytes, ByteSpan(*bytes), Limits{}).value();
  const std::weak_ptr<const Bytes> watched = bytes;
  bytes.reset();
  ASSERT_FALSE(watched.expired());
  EXPECT_EQ(index.tensor(0).name(), "b");
}

}  // namespace
}  // namespace sealpoint::internal::metadata
