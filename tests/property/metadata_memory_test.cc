// SPDX-License-Identifier: Apache-2.0
//
// Small files that promise much: the reader refuses them without taking the memory they ask for.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "lib/metadata/metadata.h"
#include "tests/support/container/hostile_index.h"
#include "tests/support/process/allocation_watch.h"

namespace sealpoint::internal {
namespace {

using sealpoint::testing::EncodeHostileIndex;
using sealpoint::testing::HostileBoxes;
using sealpoint::testing::HostileGrid;
using sealpoint::testing::HostileMetadata;

struct Answer {
  Status status;
  std::uint64_t allocated_bytes = 0;  // at the peak; under a sanitizer they are not counted
};

Answer Check(const std::shared_ptr<const Bytes>& index, const Limits& limits) {
  sealpoint::testing::BeginAllocationWatch();
  Status status =
      metadata::Metadata::Decode(metadata::MetadataKind::kIndex, index, ByteSpan(*index), limits)
          .status();
  return {.status = std::move(status),
          .allocated_bytes = sealpoint::testing::EndAllocationWatch().live_bytes};
}

Answer Check(const HostileMetadata& index) {
  return Check(std::make_shared<const Bytes>(EncodeHostileIndex(index)), Limits());
}

constexpr std::uint64_t kSmall = 64 * kKiB;

TEST(ContentsMemory, AllocationsAreCounted) {
  if (!sealpoint::testing::CanWatchAllocations()) GTEST_SKIP() << "a sanitizer has its own";
  sealpoint::testing::BeginAllocationWatch();
  const auto memory = std::make_unique<Bytes>(1000);
  EXPECT_GE(sealpoint::testing::EndAllocationWatch().live_bytes, 1000u);
}

TEST(ContentsMemory, RecordCountAboveTheLimitTakesNoBitmap) {
  HostileMetadata index;
  for (std::uint8_t id = 1; id < 100; ++id) {
    index.blobs.push_back({.id = id, .record_count = ~0u});
  }
  const Answer verification = Check(index);
  EXPECT_EQ(verification.status.place().rule, "R-IDX-04");
  EXPECT_LT(verification.allocated_bytes, kSmall);
}

TEST(ContentsMemory, RecordCountAtTheLimitTakesABitEach) {
  HostileMetadata index;
  index.blobs.push_back({.id = 1, .record_count = 1u << 28});
  const Answer verification = Check(index);
  EXPECT_EQ(verification.status.place().rule, "R-IDX-21");
  EXPECT_LT(verification.allocated_bytes, 33 * kMiB);
}

TEST(ContentsMemory, GridThatPromisesManyCells) {
  HostileMetadata index;
  index.tensors.push_back(
      {.name = "t",
       .shape = std::vector<std::uint64_t>(8, 100),
       .grid = HostileGrid{.cuts = {}, .cut_counts = std::vector<std::uint32_t>(8, 99)},
       .shards = {{0, 0}}});
  index.blobs.push_back({.id = 1, .record_count = 1, .shard_count = 1});
  const Answer verification = Check(index);
  EXPECT_EQ(verification.status.place().rule, "R-IDX-14");
  EXPECT_LT(verification.allocated_bytes, kSmall);
}

TEST(ContentsMemory, ShardOfManyRecords) {
  HostileMetadata index;
  index.tensors.push_back({.name = "t",
                           .shape = {std::uint64_t{1} << 60},
                           .grid = HostileGrid{.cuts = {}, .cut_counts = {0}},
                           .shards = {{0, 0}}});
  index.blobs.push_back({.id = 1, .record_count = 1, .shard_count = 1});
  const Answer verification = Check(index);
  EXPECT_EQ(verification.status.place().rule, "R-IDX-20");
  EXPECT_LT(verification.allocated_bytes, kSmall);
}

// A box in many dimensions has 2^ndim corners.
TEST(ContentsMemory, BoxesOfManyDimensions) {
  HostileMetadata index;
  HostileBoxes boxes;
  for (const std::uint64_t offset : {0u, 1u, 2u}) {
    boxes.boxes.insert(boxes.boxes.end(), 32, offset);
    boxes.boxes.insert(boxes.boxes.end(), 32, 1);
  }
  std::vector<std::uint64_t> shape(32, 1);
  for (std::size_t d = 0; d < 32; ++d) shape[d] = 3;
  index.tensors.push_back(
      {.name = "t", .shape = shape, .boxes = boxes, .shards = {{0, 0}, {0, 1}, {0, 2}}});
  index.blobs.push_back({.id = 1, .record_count = 3, .shard_count = 3});
  const Answer verification = Check(index);
  EXPECT_EQ(verification.status.code(), Code::kLimitExceeded);
  EXPECT_EQ(verification.status.place().rule, "R-IDX-04");
  EXPECT_LT(verification.allocated_bytes, kSmall);
}

// Tensors that share their shards: the second one already takes the records of the first.
TEST(ContentsMemory, SharedTablesDoNotMultiplyTheWork) {
  flatbuffers::FlatBufferBuilder builder;
  constexpr std::uint32_t kShards = 10000;
  std::vector<fb::ShardRef> refs;
  std::vector<std::uint64_t> cuts;
  for (std::uint32_t i = 0; i < kShards; ++i) refs.emplace_back(0, i);
  for (std::uint64_t i = 1; i < kShards; ++i) cuts.push_back(i);
  const auto shards = builder.CreateVectorOfStructs(refs);
  const auto shape = builder.CreateVector(std::vector<std::uint64_t>{kShards});
  const auto counts = builder.CreateVector(std::vector<std::uint32_t>{kShards - 1});
  const auto grid = fb::CreateGrid(builder, builder.CreateVector(cuts), counts);
  std::vector<flatbuffers::Offset<flatbuffers::String>> texts(
      30, builder.CreateString(std::string(1000, 'x')));
  const auto placement = builder.CreateVector(texts);
  std::vector<flatbuffers::Offset<fb::Tensor>> tensors;
  for (std::uint32_t i = 0; i < 20000; ++i) {
    const auto name = builder.CreateString(std::to_string(100000 + i));
    tensors.push_back(
        fb::CreateTensor(builder, name, shape, grid, 0, shards, 12, 4, 12, placement));
  }
  const std::array<std::uint8_t, 16> id_bytes{1};
  const fb::Bits128 id{flatbuffers::span<const std::uint8_t, 16>(id_bytes)};
  const std::vector<flatbuffers::Offset<fb::Blob>> blobs{
      fb::CreateBlob(builder, &id, 1 << 24, 4096, 100000, kShards, &id, &id)};
  const auto fb_tensors = builder.CreateVector(tensors);
  const auto fb_objects = builder.CreateVector(std::vector<flatbuffers::Offset<fb::Object>>());
  const auto fb_blobs = builder.CreateVector(blobs);
  const auto mesh = builder.CreateVector(std::vector<flatbuffers::Offset<fb::MeshAxis>>());
  const auto provenance =
      builder.CreateVector(std::vector<flatbuffers::Offset<fb::ProvenanceEntry>>());
  builder.Finish(
      fb::CreateIndex(builder, fb_tensors, fb_objects, fb_blobs, 1, 0, 0, mesh, provenance),
      "SPIX");
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  const auto owner = std::make_shared<const Bytes>(bytes.begin(), bytes.end());

  // 2 * 10^8 shards are named, above the limit; with a higher limit the second tensor is refused.
  Limits limits;
  EXPECT_EQ(Check(owner, limits).status.place().rule, "R-IDX-04");
  limits.shard_count_max = std::uint64_t{1} << 30;
  const Answer verification = Check(owner, limits);
  EXPECT_EQ(verification.status.place().rule, "R-IDX-20");
  EXPECT_EQ(verification.status.place().tensor, "100001");
  EXPECT_LT(verification.allocated_bytes, kSmall);
}

}  // namespace
}  // namespace sealpoint::internal
