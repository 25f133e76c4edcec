// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/placement.h"

#include <gmock/gmock.h>

namespace sealpoint {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Mesh MeshOf(MeshAxes axes) { return Mesh::Create(std::move(axes)).value(); }

// "[0:4] run 1:3 at 5" per part.
std::vector<std::string> Parts(const Result<LocalLayout>& layout) {
  std::vector<std::string> texts;
  for (const LocalPart& part : layout.value().parts) {
    texts.push_back(part.region.ToString() + " at " + std::to_string(part.local_offset));
  }
  return texts;
}

std::string ErrorOf(const Shape& shape, const Placement& placement) {
  return PlaceTensor(MeshOf({{"x", 2}, {"y", 2}}), 0, shape, placement).error().ToString();
}

TEST(Placement, CeilChunkLeavesTheLastRanksShortOrEmpty) {
  const Mesh mesh = MeshOf({{"x", 4}});
  const Placement placement = {Shard{.dim = 0, .axis = "x"}};
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {5}, placement)), ElementsAre("[0:2] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 2, {5}, placement)), ElementsAre("[4:5] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 3, {5}, placement)), IsEmpty());
  EXPECT_THAT(Parts(PlaceTensor(mesh, 3, {10}, placement)), ElementsAre("[9:10] at 0"));
}

TEST(Placement, EvenPiecesDifferByOne) {
  const Mesh mesh = MeshOf({{"x", 4}});
  const Placement placement = {Shard{.dim = 0, .axis = "x", .rule = SplitRule::kEven}};
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {6}, placement)), ElementsAre("[0:2] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {6}, placement)), ElementsAre("[2:4] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 2, {6}, placement)), ElementsAre("[4:5] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 3, {6}, placement)), ElementsAre("[5:6] at 0"));
}

TEST(Placement, UnitsStayTogether) {
  const Mesh mesh = MeshOf({{"x", 2}});
  const Placement heads = {Shard{.dim = 0, .axis = "x", .unit = 4}};
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {12}, heads)), ElementsAre("[0:8] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {12}, heads)), ElementsAre("[8:12] at 0"));
}

TEST(Placement, TwoRulesCutOneDimensionOneAfterTheOther) {
  // Tensor-parallel first, FSDP second: what FSDP2 over tensor parallelism holds.
  const Mesh mesh = MeshOf({{"data", 2}, {"tensor", 2}});
  const Placement placement = {Shard{.dim = 0, .axis = "tensor"}, Shard{.dim = 0, .axis = "data"}};
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {8, 3}, placement)), ElementsAre("[0:2, 0:3] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {8, 3}, placement)), ElementsAre("[4:6, 0:3] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 2, {8, 3}, placement)), ElementsAre("[2:4, 0:3] at 0"));
}

TEST(Placement, StridedShardsAreSeveralBoxesOfOneLocalTensor) {
  const Mesh mesh = MeshOf({{"x", 2}});
  const Placement placement = {StridedShard{.dim = 0, .axis = "x", .split_factor = 2}};
  const auto layout = PlaceTensor(mesh, 1, {8, 3}, placement);
  EXPECT_THAT(Parts(layout), ElementsAre("[2:4, 0:3] at 0", "[6:8, 0:3] at 6"));
  EXPECT_THAT(layout->shape, ElementsAre(4, 3));
}

TEST(Placement, SectionsOfAFusedTensorAreCutEachByItself) {
  const Mesh mesh = MeshOf({{"tensor", 2}});
  const Placement qkv = {ShardSections{.dim = 0, .axis = "tensor", .sections = {8, 2, 2}}};
  const auto layout = PlaceTensor(mesh, 1, {12, 5}, qkv);
  EXPECT_THAT(Parts(layout),
              ElementsAre("[4:8, 0:5] at 0", "[9:10, 0:5] at 20", "[11:12, 0:5] at 25"));
  EXPECT_THAT(layout->shape, ElementsAre(6, 5));
}

TEST(Placement, PartsInALaterDimensionHaveStrides) {
  const Mesh mesh = MeshOf({{"x", 2}});
  const auto layout =
      PlaceTensor(mesh, 0, {2, 8}, {StridedShard{.dim = 1, .axis = "x", .split_factor = 2}});
  EXPECT_THAT(Parts(layout), ElementsAre("[0:2, 0:2] at 0", "[0:2, 4:6] at 2"));
  EXPECT_THAT(layout->parts[1].local_strides, ElementsAre(4, 1));
}

TEST(Placement, OneWholeBoxIsDense) {
  const auto layout = PlaceTensor(MeshOf({{"x", 2}}), 0, {2, 8}, {Shard{.dim = 1, .axis = "x"}});
  EXPECT_THAT(layout->parts[0].local_strides, IsEmpty());
}

TEST(Placement, PaddingIsNeverStored) {
  const Mesh mesh = MeshOf({{"tensor", 4}});
  const Placement vocabulary = {Pad{.dim = 0, .size = 12}, Shard{.dim = 0, .axis = "tensor"}};
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {7, 2}, vocabulary)), ElementsAre("[0:3, 0:2] at 0"));
  const auto third = PlaceTensor(mesh, 2, {7, 2}, vocabulary);
  EXPECT_THAT(Parts(third), ElementsAre("[6:7, 0:2] at 0"));
  EXPECT_THAT(third->shape, ElementsAre(3, 2));
  EXPECT_THAT(third->parts[0].local_strides, ElementsAre(2, 1));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 3, {7, 2}, vocabulary)), IsEmpty());
}

TEST(Placement, FlatShardsAreRunsOfTheTensorParallelBox) {
  const Mesh mesh = MeshOf({{"data", 4}, {"tensor", 2}});
  const Placement optimizer = {Shard{.dim = 1, .axis = "tensor"}, ShardFlat{.axes = {"data"}}};
  // 3 x 2 of 3 x 4 elements over 4 ranks: 2, 2, 2, 0.
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {3, 4}, optimizer)),
              ElementsAre("[0:3, 2:4] run 0:2 at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 5, {3, 4}, optimizer)),
              ElementsAre("[0:3, 2:4] run 4:6 at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 7, {3, 4}, optimizer)), IsEmpty());
}

TEST(Placement, FlatRangesAreRoundedUpToUnits) {
  const Mesh mesh = MeshOf({{"x", 2}});
  const Placement placement = {ShardFlat{.axes = {"x"}, .unit = 8}};
  const auto second = PlaceTensor(mesh, 1, {20}, placement);
  EXPECT_THAT(Parts(second), ElementsAre("[0:20] run 16:20 at 0"));
  EXPECT_THAT(second->shape, ElementsAre(16));
}

TEST(Placement, FlatShardsCountOverSeveralAxes) {
  const Mesh mesh = MeshOf({{"replica", 2}, {"shard", 2}});
  const Placement placement = {ShardFlat{.axes = {"shard", "replica"}}};
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {8}, placement)), ElementsAre("[0:8] run 4:6 at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 2, {8}, placement)), ElementsAre("[0:8] run 2:4 at 0"));
}

TEST(Placement, FlatRangesRunThroughSeveralRowBoxes) {
  const Mesh mesh = MeshOf({{"x", 2}, {"y", 2}});
  const Placement placement = {StridedShard{.dim = 0, .axis = "x", .split_factor = 2},
                               ShardFlat{.axes = {"y"}}};
  // x = 0 has rows 0 and 2 of 4; y cuts their 6 elements into 3 and 3.
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {4, 3}, placement)), ElementsAre("[0:1, 0:3] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {4, 3}, placement)), ElementsAre("[2:3, 0:3] at 0"));
}

TEST(Placement, ReplicasAreTheRanksAlongReplicatedAxes) {
  const Mesh mesh = MeshOf({{"replica", 2}, {"pipeline", 2}, {"shard", 2}});
  const auto layout =
      PlaceTensor(mesh, 3, {4},
                  {Replicate{"replica"}, LocalOnly{"pipeline"}, Shard{.dim = 0, .axis = "shard"}});
  EXPECT_THAT(Parts(layout), ElementsAre("[2:4] at 0"));
  EXPECT_THAT(layout->replicas, ElementsAre(3, 7));
}

TEST(Placement, TensorsWithoutDimensionsAreReplicatedOrFlat) {
  const Mesh mesh = MeshOf({{"x", 2}});
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {}, {Replicate{"x"}})), ElementsAre("[] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {}, {ShardFlat{.axes = {"x"}}})), ElementsAre("[] at 0"));
  EXPECT_THAT(Parts(PlaceTensor(mesh, 1, {}, {ShardFlat{.axes = {"x"}}})), IsEmpty());
}

TEST(Placement, EmptyTensorsHaveNoParts) {
  const Mesh mesh = MeshOf({{"x", 2}});
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {0, 3}, {Shard{.dim = 0, .axis = "x"}})), IsEmpty());
  EXPECT_THAT(Parts(PlaceTensor(mesh, 0, {3, 0}, {ShardFlat{.axes = {"x"}}})), IsEmpty());
}

TEST(Placement, RefusesAForgottenOrUnknownOrRepeatedAxis) {
  EXPECT_THAT(ErrorOf({4}, {Replicate{"x"}}), HasSubstr("no rule names mesh axis y"));
  EXPECT_THAT(ErrorOf({4}, {Replicate{"z"}}), HasSubstr("no axis z"));
  EXPECT_THAT(ErrorOf({4}, {Replicate{"x"}, LocalOnly{"x"}}), HasSubstr("named twice"));
}

TEST(Placement, RefusesRulesThatDoNotFitTheTensor) {
  const Replicate rest{"y"};
  EXPECT_THAT(ErrorOf({4}, {Shard{.dim = 1, .axis = "x"}, rest}), HasSubstr("1 dimensions"));
  EXPECT_THAT(ErrorOf({4}, {Shard{.dim = -1, .axis = "x"}, rest}), HasSubstr("1 dimensions"));
  EXPECT_THAT(ErrorOf({4}, {Shard{.dim = 0, .axis = "x", .unit = 3}, rest}),
              HasSubstr("expected a divisor of"));
  EXPECT_THAT(ErrorOf({4}, {Shard{.dim = 0, .axis = "x", .unit = 0}, rest}),
              HasSubstr("expected a divisor of"));
  EXPECT_THAT(ErrorOf({4}, {ShardSections{.dim = 0, .axis = "x", .sections = {3, 2}}, rest}),
              HasSubstr("exceed the 4"));
  EXPECT_THAT(ErrorOf({4}, {ShardSections{.dim = 0, .axis = "x", .sections = {3}}, rest}),
              HasSubstr("cover 3 of 4"));
  EXPECT_THAT(ErrorOf({4}, {StridedShard{.dim = 0, .axis = "x", .split_factor = 0}, rest}),
              HasSubstr("split factor"));
  EXPECT_THAT(ErrorOf({4}, {Pad{.dim = 0, .size = 3}, Replicate{"x"}, rest}),
              HasSubstr("expected at least the extent"));
  EXPECT_THAT(ErrorOf({4}, {Shard{.dim = 0, .axis = "x"}, Pad{.dim = 0, .size = 8}, rest}),
              HasSubstr("padding after a rule that splits the same"));
  EXPECT_THAT(ErrorOf({4}, {ShardFlat{.axes = {}}, Replicate{"x"}, rest}),
              HasSubstr("0 axes and unit 1"));
}

TEST(Placement, RefusesCutsBehindAFlatCut) {
  EXPECT_THAT(ErrorOf({4}, {ShardFlat{.axes = {"x"}}, Shard{.dim = 0, .axis = "y"}}),
              HasSubstr("after shard_flat"));
}

TEST(Placement, RefusesFlatRangesThatAreNoRuns) {
  EXPECT_THAT(ErrorOf({4, 8}, {StridedShard{.dim = 1, .axis = "x", .split_factor = 2},
                               ShardFlat{.axes = {"y"}}}),
              HasSubstr("not runs"));
  EXPECT_THAT(ErrorOf({4, 8}, {Pad{.dim = 1, .size = 9}, Replicate{"x"}, ShardFlat{.axes = {"y"}}}),
              HasSubstr("not runs"));
}

TEST(Placement, RefusesSizesBeyond64Bits) {
  const std::uint64_t huge = 1ull << 40;
  EXPECT_EQ(PlaceTensor(Mesh(), 0, {huge, huge}, {}).error().code(), Code::kLimitExceeded);
  EXPECT_EQ(PlaceTensor(Mesh(), 0, {4, huge}, {Pad{.dim = 0, .size = huge}}).error().code(),
            Code::kLimitExceeded);
  EXPECT_EQ(PlaceTensor(MeshOf({{"x", 2}}), 0, {~0ull}, {ShardFlat{.axes = {"x"}, .unit = 1000}})
                .error()
                .code(),
            Code::kLimitExceeded);
}

TEST(Placement, RefusesMoreBoxesThanAnIndexTakes) {
  const Mesh mesh = MeshOf({{"x", 2}, {"y", 2}});
  const Placement placement = {StridedShard{.dim = 0, .axis = "x", .split_factor = 1 << 10},
                               StridedShard{.dim = 1, .axis = "y", .split_factor = 1 << 10}};
  EXPECT_THAT(PlaceTensor(mesh, 0, {1 << 12, 1 << 12}, placement).error().message(),
              HasSubstr("boxes"));
}

TEST(Placement, ARuleMakesSoManyPartsAndNoMore) {
  constexpr std::uint64_t kMax = 1u << 16;
  const Mesh mesh = MeshOf({{"x", 2}});
  const auto place = [&](std::uint64_t size, Placement placement) {
    return PlaceTensor(mesh, 0, {size}, placement).status().ok();
  };
  const auto sections = [](std::uint64_t count) {
    return Placement{
        ShardSections{.dim = 0, .axis = "x", .sections = std::vector<std::uint64_t>(count, 2)}};
  };
  EXPECT_TRUE(place(2 * kMax, sections(kMax)));
  EXPECT_FALSE(place(2 * kMax + 2, sections(kMax + 1)));
  const auto strided = [](std::uint64_t factor) {
    return Placement{StridedShard{.dim = 0, .axis = "x", .split_factor = factor}};
  };
  EXPECT_TRUE(place(2 * kMax, strided(kMax)));
  EXPECT_FALSE(place(2, strided(kMax + 1)));
}

TEST(Placement, RefusesMoreSectionsThanAnIndexTakesThoughMostAreEmpty) {
  std::vector<std::uint64_t> sections((1u << 16) + 1);
  sections.back() = 4;
  EXPECT_THAT(
      ErrorOf({4}, {ShardSections{.dim = 0, .axis = "x", .sections = sections}, Replicate{"y"}}),
      HasSubstr("sections, the limit is"));
}

// Each rank's part has 2^63 elements.
TEST(Placement, RefusesATensorBeyond64BitsWhosePartsFit) {
  const auto layout =
      PlaceTensor(MeshOf({{"x", 2}}), 0, {1ull << 32, 1ull << 32}, {Shard{.dim = 0, .axis = "x"}});
  ASSERT_FALSE(layout.ok());
  EXPECT_EQ(layout.error().code(), Code::kLimitExceeded);
}

TEST(Placement, RefusesFlatUnitsOfNothing) {
  EXPECT_THAT(ErrorOf({4}, {ShardFlat{.axes = {"x", "y"}, .unit = 0}}),
              HasSubstr("axes and unit 0"));
}

// The part of the last rank is as long as the others, but its last position is padding.
TEST(Placement, RefusesFlatRangesBehindPadding) {
  const Placement placement = {Pad{.dim = 1, .size = 8}, Shard{.dim = 1, .axis = "x"},
                               ShardFlat{.axes = {"y"}}};
  EXPECT_FALSE(PlaceTensor(MeshOf({{"x", 2}, {"y", 2}}), 2, {4, 7}, placement).ok());
}

TEST(Placement, RulesAreWrittenAsProvenance) {
  EXPECT_THAT(
      ToStrings({Shard{.dim = 1, .axis = "tensor", .unit = 4}, Replicate{"data"},
                 LocalOnly{"pipeline"}, Pad{.dim = 0, .size = 9},
                 StridedShard{.dim = 0, .axis = "x", .split_factor = 2},
                 ShardSections{.dim = 0, .axis = "y", .sections = {4, 2}},
                 ShardFlat{.axes = {"a", "b"}, .unit = 2}}),
      ElementsAre("shard(dim 1, tensor, ceil_chunk, unit 4)", "replicate(data)",
                  "hold_here(pipeline)", "pad(dim 0, size 9)",
                  "strided_shard(dim 0, x, split factor 2)",
                  "shard_sections(dim 0, y, ceil_chunk, 4+2)", "shard_flat(a x b, unit 2)"));
}

TEST(PlaceBucket, CutsMembersAtTheRangesOfTheBucket) {
  // Two tensors of 6 and 5 elements, the second aligned to 8: ranges of 4 of 16.
  const std::vector<BucketMember> members = {{.box = {{0, 0}, {2, 3}}, .offset = 0},
                                             {.box = {{0}, {5}}, .offset = 8}};
  const auto second = PlaceBucket(members, 16, 4, 1);
  ASSERT_THAT(second.value(), SizeIs(1));
  EXPECT_EQ(second->front().region.ToString(), "[0:2, 0:3] run 4:6");
  EXPECT_EQ(second->front().local_offset, 0u);
  const auto third = PlaceBucket(members, 16, 4, 2);
  ASSERT_THAT(third.value(), SizeIs(1));
  EXPECT_EQ(third->front().member, 1u);
  EXPECT_EQ(third->front().region.ToString(), "[0:5] run 0:4");
}

TEST(PlaceBucket, RefusesMembersThatOverlapOrPass) {
  const BucketMember one{.box = {{0}, {4}}, .offset = 0};
  const BucketMember two{.box = {{0}, {4}}, .offset = 3};
  const BucketMember none{.box = {{0}, {0}}, .offset = 3};
  const BucketMember odd{.box = {{0}, {1, 1}}, .offset = 3};
  const auto message = [](std::vector<BucketMember> members, std::uint64_t size,
                          std::uint64_t index) {
    return PlaceBucket(members, size, 2, index).error().message();
  };
  EXPECT_THAT(message({two, one}, 8, 0), HasSubstr("element 3"));
  EXPECT_THAT(message({one}, 3, 0), HasSubstr("exceed the bucket"));
  EXPECT_THAT(message({none}, 8, 0), HasSubstr("no elements"));
  EXPECT_THAT(message({odd}, 8, 0), HasSubstr("extents"));
  EXPECT_THAT(message({one}, 8, 2), HasSubstr("is 2, expected below 2"));
}

TEST(LocalPart, ViewsPointIntoTheLocalTensor) {
  std::uint32_t local[8] = {};
  const LocalPart part{
      .region = Region::Of({{0, 4}, {2, 2}}), .local_offset = 2, .local_strides = {4, 1}};
  const MemoryView source = SourceOf(part, MemoryView::Host(local), 4);
  EXPECT_EQ(source.data, reinterpret_cast<const std::byte*>(local));
  EXPECT_EQ(source.size_bytes, sizeof(local));
  EXPECT_EQ(source.origin_bytes, 8u);
  EXPECT_THAT(source.strides_bytes, ElementsAre(16, 4));
  EXPECT_EQ(source.dtype, DType::kUInt32);
  const MemoryView destination = DestinationOf(part, MutableMemoryView::Host(local), 4);
  EXPECT_EQ(destination, source);
}

TEST(LocalPart, DenseViewsHaveThePartAlone) {
  std::uint32_t local[8] = {};
  const LocalPart part{.region = Box{{10}, {3}}, .local_offset = 2};
  const MemoryView view = SourceOf(part, MemoryView::Host(local), 4);
  EXPECT_EQ(view.data, reinterpret_cast<const std::byte*>(local + 2));
  EXPECT_EQ(view.size_bytes, 12u);
}

TEST(LocalPart, ViewsEndWithTheLocalTensor) {
  std::uint32_t local[8] = {};
  LocalPart part{.region = Box{{10}, {3}}, .local_offset = 7};
  EXPECT_EQ(SourceOf(part, MemoryView::Host(local), 4).size_bytes, 4u);
  part.local_offset = 9;
  EXPECT_EQ(SourceOf(part, MemoryView::Host(local), 4).size_bytes, 0u);
  part.local_offset = ~0ull;
  EXPECT_EQ(SourceOf(part, MemoryView::Host(local), 4).size_bytes, 0u);
}

}  // namespace
}  // namespace sealpoint
