// SPDX-License-Identifier: Apache-2.0
//
// Bounds from both sides, and damage that only one of several similar checks can find.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/unit/metadata/rule_check.h"

namespace sealpoint::internal::metadata {
namespace {

using sealpoint::testing::EncodeHostileIndex;
using sealpoint::testing::HostileBoxes;
using sealpoint::testing::HostileGrid;
using sealpoint::testing::HostileMetadata;

// A grid with a run cut and a box list of bricks, one blob, six records.
HostileMetadata ValidIndex() {
  HostileMetadata index;
  index.tensors.push_back({.name = "bricks",
                           .shape = {2, 3},
                           .boxes = HostileBoxes{.boxes = {0, 0, 1, 1,  //
                                                           0, 1, 1, 2,  //
                                                           1, 0, 1, 3}},
                           .shards = {{0, 0}, {0, 1}, {0, 2}}});
  index.tensors.push_back(
      {.name = "runs",
       .shape = {10},
       .grid =
           HostileGrid{
               .cuts = {5}, .cut_counts = {1}, .run_cut_counts = {{1, 0}}, .run_cuts = {{3}}},
       .shards = {{0, 3}, {0, 4}, {0, 5}}});
  index.blobs = {{.id = 1, .record_count = 6, .shard_count = 6}};
  index.raw_bytes = (6 + 10) * 4;
  return index;
}

// One tensor of two shards, of the same or of two boxes, each with a run.
Status CheckTwoShards(std::vector<std::uint64_t> boxes, std::vector<std::uint64_t> runs) {
  HostileMetadata manifest;
  manifest.tensors.push_back(
      {.name = "w",
       .shape = {4, 4},
       .boxes = HostileBoxes{.boxes = std::move(boxes), .runs = std::move(runs)},
       .shards = {{0, 0}, {0, 1}}});
  return CheckManifest(manifest, {.record_count = 2, .shard_count = 2});
}

flatbuffers::Table* TensorTable(Bytes& bytes, flatbuffers::uoffset_t number) {
  auto* root = flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes.data());
  const auto* tensors =
      root->GetPointer<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::Table>>*>(
          fb::Index::VT_TENSORS);
  return const_cast<flatbuffers::Table*>(tensors->Get(number));
}

// Moves a vector of 64-bit numbers by 4: the low half of its first number becomes its length.
void Misalign(flatbuffers::Table* table, flatbuffers::voffset_t field) {
  std::uint8_t* const offset = table->GetAddressOf(field);
  flatbuffers::WriteScalar(offset, flatbuffers::ReadScalar<flatbuffers::uoffset_t>(offset) + 4);
}

TEST(ContentsBounds, TheUndamagedPass) {
  EXPECT_EQ(Check(ValidIndex()), Status());
  EXPECT_EQ(CheckTwoShards({0, 0, 2, 4, 0, 0, 2, 4}, {0, 4, 4, 8}), Status());
}

TEST(ContentsBounds, R_IDX_02_MisalignedCutsOfAGrid) {
  HostileMetadata index = ValidIndex();
  index.tensors[1].grid->cuts = {1};
  Bytes bytes = EncodeHostileIndex(index);
  Misalign(TensorTable(bytes, 1)->GetPointer<flatbuffers::Table*>(fb::Tensor::VT_GRID),
           fb::Grid::VT_CUTS);
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

TEST(ContentsBounds, R_IDX_02_MisalignedRunCuts) {
  HostileMetadata index = ValidIndex();
  index.tensors[1].grid->run_cuts = {{1}};
  Bytes bytes = EncodeHostileIndex(index);
  Misalign(TensorTable(bytes, 1)->GetPointer<flatbuffers::Table*>(fb::Tensor::VT_GRID),
           fb::Grid::VT_RUN_CUTS);
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

TEST(ContentsBounds, R_IDX_02_MisalignedBoxes) {
  HostileMetadata index = ValidIndex();
  index.tensors[0].boxes->boxes[0] = 2;
  Bytes bytes = EncodeHostileIndex(index);
  Misalign(TensorTable(bytes, 0)->GetPointer<flatbuffers::Table*>(fb::Tensor::VT_BOXES),
           fb::BoxList::VT_BOXES);
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

TEST(ContentsBounds, R_IDX_02_MisalignedRuns) {
  HostileMetadata index = ValidIndex();
  index.tensors[0].boxes->runs = {{2, 1, 0, 1, 0, 3}};
  Bytes bytes = EncodeHostileIndex(index);
  Misalign(TensorTable(bytes, 0)->GetPointer<flatbuffers::Table*>(fb::Tensor::VT_BOXES),
           fb::BoxList::VT_RUNS);
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

// Far enough for the memory there not to belong to the buffer.
TEST(ContentsBounds, R_IDX_02_RootWhoseFieldsLieFarOutside) {
  Bytes bytes = EncodeHostileIndex(ValidIndex());
  std::uint8_t* const root = reinterpret_cast<std::uint8_t*>(
      flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes.data()));
  flatbuffers::WriteScalar(root, flatbuffers::soffset_t{0x7fff0000});
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

TEST(ContentsBounds, R_IDX_02_TensorWhoseFieldsLieFarOutside) {
  Bytes bytes = EncodeHostileIndex(ValidIndex());
  flatbuffers::WriteScalar(reinterpret_cast<std::uint8_t*>(TensorTable(bytes, 1)),
                           flatbuffers::soffset_t{0x7fff0000});
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

TEST(ContentsBounds, R_IDX_04_ABlobAtItsSizeLimit) {
  EXPECT_EQ(Check(ValidIndex(), Limits{.blob_size_max_bytes = 8192}), Status());
}

TEST(ContentsBounds, R_IDX_10_TheLargestChunkSize) {
  HostileMetadata index = ValidIndex();
  index.tensors[0].chunk_size_log2 = 27;
  EXPECT_EQ(Check(index), Status());
}

TEST(ContentsBounds, R_IDX_14_MoreCellsThanShardsBesideRunCuts) {
  HostileMetadata index = ValidIndex();
  index.tensors[1].grid->cuts = {1, 2, 5};
  index.tensors[1].grid->cut_counts = {3};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-14"));
}

TEST(ContentsBounds, R_IDX_16_BoxesDescendWhileTheirRunsAscend) {
  EXPECT_THAT(CheckTwoShards({2, 0, 2, 4, 0, 0, 2, 4}, {0, 4, 4, 8}), Corrupt("R-IDX-16"));
}

TEST(ContentsBounds, R_IDX_16_RunsOfOneBoxDescend) {
  EXPECT_THAT(CheckTwoShards({0, 0, 2, 4, 0, 0, 2, 4}, {4, 8, 0, 4}), Corrupt("R-IDX-16"));
}

TEST(ContentsBounds, R_IDX_16_RunsOfOneBoxBeginAtTheSameElement) {
  EXPECT_THAT(CheckTwoShards({0, 0, 2, 4, 0, 0, 2, 4}, {0, 4, 0, 8}), Corrupt("R-IDX-16"));
}

TEST(ContentsBounds, R_IDX_21_ATableDirectlyBehindTheHeader) {
  HostileMetadata index = ValidIndex();
  index.blobs.push_back({.id = 2, .file_size = 4096, .table_offset = 128});
  EXPECT_EQ(Check(index), Status());
}

TEST(ContentsBounds, ShardsTouchingABoxWithoutElementsOrOutsideOfTheShapeAreNone) {
  const auto owner = std::make_shared<const Bytes>(EncodeHostileIndex(ValidIndex()));
  const auto metadata = Metadata::Decode(MetadataKind::kIndex, owner, ByteSpan(*owner), Limits{});
  ASSERT_TRUE(metadata.ok());
  const TensorView grid = metadata->tensor(1);
  EXPECT_TRUE(grid.ShardsTouching(Box{.offset = {3}, .extent = {0}}).empty());
  EXPECT_TRUE(grid.ShardsTouching(Box{.offset = {10}, .extent = {1}}).empty());
  EXPECT_TRUE(grid.ShardsTouching(Box{.offset = {11}, .extent = {5}}).empty());
  EXPECT_EQ(grid.ShardsTouching(Box{.offset = {9}, .extent = {5}}).size(), 1u);
}

}  // namespace
}  // namespace sealpoint::internal::metadata
