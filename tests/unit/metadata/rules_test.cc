// SPDX-License-Identifier: Apache-2.0
//
// One damage per test: the index (or manifest) is valid but for what the test's name says.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/unit/metadata/rule_check.h"

namespace sealpoint::internal::metadata {
namespace {

using sealpoint::testing::EncodeHostileIndex;
using sealpoint::testing::EncodeHostileManifest;
using sealpoint::testing::HostileBoxes;
using sealpoint::testing::HostileGrid;
using sealpoint::testing::HostileMetadata;
using sealpoint::testing::HostileTensor;
using sealpoint::testing::UnknownField;

// Positions in ValidIndex().tensors.
enum : std::size_t { kBricks, kEmpty, kGrid, kRuns, kScalar };

// Records 0 to 5 of blob 0 and 0 to 5 of blob 1, each one chunk.
HostileMetadata ValidIndex() {
  HostileMetadata index;
  // 4 x 4, cut as bricks are laid: no grid has these shards.
  index.tensors.push_back({.name = "bricks",
                           .shape = {4, 4},
                           .boxes = HostileBoxes{.boxes = {0, 0, 2, 1,  //
                                                           0, 1, 2, 3,  //
                                                           2, 0, 2, 3,  //
                                                           2, 3, 2, 1}},
                           .shards = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}});
  index.tensors.push_back({.name = "empty", .shape = {0, 3}});
  index.tensors.push_back({.name = "grid",
                           .shape = {4, 6},
                           .grid = HostileGrid{.cuts = {2}, .cut_counts = {1, 0}},
                           .shards = {{0, 2}, {1, 2}}});
  index.tensors.push_back(
      {.name = "runs",
       .shape = {10},
       .grid =
           HostileGrid{
               .cuts = {5}, .cut_counts = {1}, .run_cut_counts = {{1, 0}}, .run_cuts = {{3}}},
       .shards = {{0, 3}, {1, 3}, {0, 4}},
       .placement = {"tensor: shard dim 0"}});
  index.tensors.push_back(
      {.name = "scalar", .shape = {}, .grid = HostileGrid{}, .shards = {{1, 4}}});
  index.objects = {{.name = "args", .size = 9, .shard = {0, 5}},
                   {.name = "nothing", .size = 0},
                   {.name = "rng", .size = 5000, .shard = {1, 5}}};
  index.blobs = {{.id = 1, .record_count = 6, .shard_count = 6},
                 {.id = 2, .record_count = 7, .shard_count = 6}};
  index.raw_bytes = 16 * 4 + 24 * 4 + 10 * 4 + 4 + 9 + 5000;
  index.mesh = {{"data", 4}};
  index.provenance = {{"sealpoint.version", "0"}, {"user", "ada"}};
  return index;
}

constexpr Metadata::ManifestCounts kValidCounts{.record_count = 3, .shard_count = 3};

// A manifest of one blob with three records: two shards of a tensor and an object.
HostileMetadata ValidManifest() {
  HostileMetadata manifest;
  manifest.tensors.push_back({.name = "w",
                              .shape = {4, 4},
                              .boxes = HostileBoxes{.boxes = {0, 0, 2, 4,  //
                                                              2, 0, 2, 4},
                                                    .runs = {{0, 8, 3, 6}}},
                              .shards = {{0, 0}, {0, 1}}});
  manifest.objects = {{.name = "rng", .size = 1, .shard = {0, 2}}};
  return manifest;
}

TEST(MetadataRules, TheUndamagedPassAll) {
  EXPECT_EQ(Check(ValidIndex()), Status());
  EXPECT_EQ(CheckManifest(ValidManifest(), kValidCounts), Status());
}

TEST(MetadataRules, NothingAtAllIsValid) {
  EXPECT_EQ(Check(HostileMetadata{}), Status());
  EXPECT_EQ(CheckManifest(HostileMetadata{}, {}), Status());
}

TEST(MetadataRules, R_IDX_01_IndexAboveItsSizeLimit) {
  const Bytes bytes = EncodeHostileIndex(ValidIndex());
  EXPECT_EQ(CheckBytes(bytes, Limits{.index_size_max_bytes = bytes.size()}), Status());
  EXPECT_THAT(CheckBytes(bytes, Limits{.index_size_max_bytes = bytes.size() - 1}),
              Breaks(Code::kLimitExceeded, "R-IDX-01"));
}

TEST(MetadataRules, R_IDX_01_ManifestAboveItsSizeLimit) {
  const auto owner = std::make_shared<const Bytes>(EncodeHostileManifest(ValidManifest()));
  const Limits limits{.manifest_size_max_bytes = owner->size() - 1};
  EXPECT_THAT(Metadata::DecodeManifest(owner, ByteSpan(*owner), {3, 3}, limits).status(),
              Breaks(Code::kLimitExceeded, "R-IDX-01"));
}

TEST(MetadataRules, R_IDX_02_NoBytes) { EXPECT_THAT(CheckBytes({}), Corrupt("R-IDX-02")); }

TEST(MetadataRules, R_IDX_02_CutShort) {
  const Bytes bytes = EncodeHostileIndex(ValidIndex());
  for (const std::size_t size : {std::size_t{4}, std::size_t{8}, bytes.size() / 2}) {
    EXPECT_THAT(CheckBytes(Bytes(bytes.begin(), bytes.begin() + static_cast<long>(size))),
                Corrupt("R-IDX-02"));
  }
}

TEST(MetadataRules, R_IDX_02_OtherIdentifier) {
  Bytes bytes = EncodeHostileIndex(ValidIndex());
  bytes[7] = std::byte{'Y'};
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

TEST(MetadataRules, R_IDX_02_ManifestInsteadOfIndex) {
  EXPECT_THAT(CheckBytes(EncodeHostileManifest(ValidManifest())), Corrupt("R-IDX-02"));
}

TEST(MetadataRules, R_IDX_02_RootWithoutItsVectors) {
  flatbuffers::FlatBufferBuilder builder;
  const auto start = builder.StartTable();
  builder.Finish(flatbuffers::Offset<fb::Index>(builder.EndTable(start)), "SPIX");
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  EXPECT_THAT(CheckBytes(Bytes(bytes.begin(), bytes.end())), Corrupt("R-IDX-02"));
}

TEST(MetadataRules, R_IDX_02_MisalignedNumbers) {
  HostileMetadata index = ValidIndex();
  index.tensors[kGrid].shape = {1, 6};  // its low half is the length of the moved vector
  Bytes bytes = EncodeHostileIndex(index);
  auto* root = flatbuffers::GetMutableRoot<flatbuffers::Table>(bytes.data());
  const auto* tensors =
      root->GetPointer<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::Table>>*>(
          fb::Index::VT_TENSORS);
  auto* tensor = const_cast<flatbuffers::Table*>(tensors->Get(kGrid));
  std::uint8_t* field = tensor->GetAddressOf(fb::Tensor::VT_SHAPE);
  flatbuffers::WriteScalar(field, flatbuffers::ReadScalar<flatbuffers::uoffset_t>(field) + 4);
  EXPECT_THAT(CheckBytes(bytes), Corrupt("R-IDX-02"));
}

TEST(MetadataRules, R_IDX_02_MorePlacementsThanAllowed) {
  HostileMetadata index = ValidIndex();
  index.tensors[kGrid].placement.assign(32, "x");
  EXPECT_EQ(Check(index), Status());
  index.tensors[kGrid].placement.assign(33, "x");
  EXPECT_THAT(Check(index), Corrupt("R-IDX-02"));
}

TEST(MetadataRules, R_IDX_03_UnknownField) {
  for (const UnknownField field :
       {UnknownField::kRoot, UnknownField::kTensor, UnknownField::kGrid, UnknownField::kBoxList,
        UnknownField::kObject, UnknownField::kBlob, UnknownField::kMeshAxis,
        UnknownField::kProvenance}) {
    HostileMetadata index = ValidIndex();
    index.unknown_fields = {field};
    EXPECT_THAT(Check(index), Breaks(Code::kUnsupported, "R-IDX-03"))
        << "field " << static_cast<int>(field);
  }
  HostileMetadata manifest = ValidManifest();
  manifest.unknown_fields = {UnknownField::kRoot};
  EXPECT_THAT(CheckManifest(manifest, kValidCounts), Breaks(Code::kUnsupported, "R-IDX-03"));
}

// Facts that a compat bit announces, but no change of what a shard holds.
TEST(MetadataRules, R_IDX_03_AnnouncedFieldIsSkippedOutsideOfGeometry) {
  for (const UnknownField field :
       {UnknownField::kRoot, UnknownField::kTensor, UnknownField::kObject, UnknownField::kBlob,
        UnknownField::kMeshAxis, UnknownField::kProvenance}) {
    HostileMetadata index = ValidIndex();
    index.unknown_fields = {field};
    EXPECT_EQ(CheckAnnounced(index), Status()) << "field " << static_cast<int>(field);
  }
  for (const UnknownField field : {UnknownField::kGrid, UnknownField::kBoxList}) {
    HostileMetadata index = ValidIndex();
    index.unknown_fields = {field};
    EXPECT_THAT(CheckAnnounced(index), Breaks(Code::kUnsupported, "R-IDX-03"))
        << "field " << static_cast<int>(field);
  }
}

TEST(MetadataRules, R_IDX_03_AnUnknownCompatBitAnnouncesFields) {
  EXPECT_FALSE(AnnouncedBy({.compat = 0, .incompat = 0}).unknown);
  EXPECT_FALSE(AnnouncedBy({.compat = 3, .incompat = 0}).unknown);
  EXPECT_TRUE(AnnouncedBy({.compat = 5, .incompat = 0}).fingerprints);
  EXPECT_TRUE(AnnouncedBy({.compat = 6, .incompat = 0}).attributes);
  for (const int bit : {2, 5, 63}) {
    const AnnouncedFields announced =
        AnnouncedBy({.compat = std::uint64_t{1} << bit, .incompat = 0});
    EXPECT_TRUE(announced.unknown);
    EXPECT_FALSE(announced.fingerprints);
    EXPECT_FALSE(announced.attributes);
  }
}

TEST(MetadataRules, R_IDX_04_CountsAboveTheirLimits) {
  const HostileMetadata index = ValidIndex();
  const auto passes = Breaks(Code::kLimitExceeded, "R-IDX-04");
  EXPECT_THAT(Check(index, Limits{.tensor_count_max = 4}), passes);
  EXPECT_THAT(Check(index, Limits{.object_count_max = 2}), passes);
  EXPECT_THAT(Check(index, Limits{.blob_count_max = 1}), passes);
  // The empty object has no shard.
  EXPECT_THAT(Check(index, Limits{.shard_count_max = 11}), passes);
  EXPECT_THAT(Check(index, Limits{.record_count_max = 12}), passes);
  EXPECT_EQ(Check(index, Limits{.tensor_count_max = 5,
                                .object_count_max = 3,
                                .blob_count_max = 2,
                                .shard_count_max = 12,
                                .record_count_max = 13}),
            Status());
}

TEST(MetadataRules, R_IDX_05_BadTexts) {
  const std::string too_long(1025, 'z');
  for (const std::string& text :
       {std::string(), std::string("z\n"), std::string("z\xff"), std::string("z\0", 2), too_long}) {
    HostileMetadata index = ValidIndex();
    index.tensors[kScalar].name = text;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-05")) << "tensor name";
    index = ValidIndex();
    index.objects[2].name = text;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-05")) << "object name";
    index = ValidIndex();
    index.objects[2].media_type = text;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-05")) << "media type";
    index = ValidIndex();
    index.tensors[kRuns].placement[0] = text;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-05")) << "placement";
    index = ValidIndex();
    index.mesh[0].first = text;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-05")) << "mesh axis";
    index = ValidIndex();
    index.provenance[1].first = text;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-05")) << "provenance key";
  }
}

TEST(MetadataRules, R_IDX_05_TextsAtTheirLimit) {
  HostileMetadata index = ValidIndex();
  index.tensors[kScalar].name = std::string(1024, 'z');
  index.objects[2].media_type = std::string(255, 'z');
  index.provenance[1].second = std::string(64 * kKiB, 'z');
  EXPECT_EQ(Check(index), Status());
  index.objects[2].media_type = std::string(256, 'z');
  EXPECT_THAT(Check(index), Corrupt("R-IDX-05"));
}

TEST(MetadataRules, R_IDX_05_ProvenanceValueTooLong) {
  HostileMetadata index = ValidIndex();
  index.provenance[1].second = std::string(64 * kKiB + 1, 'z');
  EXPECT_THAT(Check(index), Corrupt("R-IDX-05"));
}

TEST(MetadataRules, R_IDX_05_ProvenanceValuesAreUtf8) {
  HostileMetadata index = ValidIndex();
  index.provenance[1].second = std::string("\0\n\x7f\xc2\x80\xc3\xa4", 7);
  EXPECT_EQ(Check(index), Status());
  index.provenance[1].second = "\xc3(";
  EXPECT_THAT(Check(index), Corrupt("R-IDX-05"));
}

TEST(MetadataRules, R_IDX_06_NamesNotAscending) {
  HostileMetadata index = ValidIndex();
  std::swap(index.tensors[kGrid], index.tensors[kRuns]);
  EXPECT_THAT(Check(index), Corrupt("R-IDX-06"));
  index = ValidIndex();
  std::swap(index.objects[0], index.objects[1]);
  EXPECT_THAT(Check(index), Corrupt("R-IDX-06"));
  index = ValidIndex();
  std::swap(index.provenance[0], index.provenance[1]);
  EXPECT_THAT(Check(index), Corrupt("R-IDX-06"));
}

TEST(MetadataRules, R_IDX_06_SameNameTwice) {
  HostileMetadata index = ValidIndex();
  index.tensors[kRuns].name = "grid";
  EXPECT_THAT(Check(index), Corrupt("R-IDX-06"));
}

TEST(MetadataRules, R_IDX_07_BlobIdsNotAscending) {
  for (const auto& [first, second] : {std::pair{2, 1}, std::pair{2, 2}, std::pair{0, 2}}) {
    HostileMetadata index = ValidIndex();
    index.blobs[0].id = static_cast<std::uint8_t>(first);
    index.blobs[1].id = static_cast<std::uint8_t>(second);
    EXPECT_THAT(Check(index), Corrupt("R-IDX-07")) << first << " " << second;
  }
}

TEST(MetadataRules, R_IDX_08_UnknownDigestAlgorithm) {
  for (const std::uint16_t algorithm : {std::uint16_t{0}, std::uint16_t{2}}) {
    HostileMetadata index = ValidIndex();
    index.digest_algorithm = algorithm;
    EXPECT_THAT(Check(index), Breaks(Code::kUnsupported, "R-IDX-08"));
  }
}

TEST(MetadataRules, R_IDX_09_DTypeAndElementSize) {
  // dtype, element size: none; of another size.
  for (const auto& [dtype, size] :
       {std::pair{0, 4}, std::pair{0, 3}, std::pair{12, 8}, std::pair{12, 3}, std::pair{12, 0}}) {
    HostileMetadata index = ValidIndex();
    index.tensors[kGrid].dtype = static_cast<std::uint16_t>(dtype);
    index.tensors[kGrid].element_size = static_cast<std::uint16_t>(size);
    EXPECT_THAT(Check(index), Corrupt("R-IDX-09")) << dtype << " " << size;
  }
}

// OCP FP6 packed, block types: a later version may have them.
TEST(MetadataRules, R_IDX_24_ElementSizesOfUnregisteredDTypes) {
  for (const std::uint16_t size : {std::uint16_t{0}, std::uint16_t{3}, std::uint16_t{34},
                                   std::uint16_t{257}, std::uint16_t{512}}) {
    HostileMetadata index = ValidIndex();
    index.tensors[kGrid].dtype = 999;
    index.tensors[kGrid].element_size = size;
    EXPECT_THAT(Check(index), Breaks(Code::kUnsupported, "R-IDX-24")) << size;
  }
}

TEST(MetadataRules, R_IDX_09_UnregisteredDTypeIsLegal) {
  HostileMetadata index = ValidIndex();
  index.tensors[kGrid].dtype = 999;
  index.tensors[kGrid].element_size = 256;
  index.tensors[kGrid].chunk_size_log2 = 13;
  index.raw_bytes += 24 * 252;
  EXPECT_EQ(Check(index), Status());
}

TEST(MetadataRules, R_IDX_10_ChunkSize) {
  for (const std::uint8_t log2 : {std::uint8_t{11}, std::uint8_t{28}, std::uint8_t{255}}) {
    HostileMetadata index = ValidIndex();
    index.tensors[kGrid].chunk_size_log2 = log2;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-10"));
    index = ValidIndex();
    index.objects[1].chunk_size_log2 = log2;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-10"));
  }
}

TEST(MetadataRules, R_IDX_11_TooManyDimensions) {
  HostileMetadata index = ValidIndex();
  index.tensors[kScalar].shape.assign(33, 1);
  EXPECT_THAT(Check(index), Corrupt("R-IDX-11"));
  index.tensors[kScalar].shape.assign(32, 1);
  index.tensors[kScalar].grid->cut_counts.assign(32, 0);
  EXPECT_EQ(Check(index), Status());
}

TEST(MetadataRules, R_IDX_11_SizesThatDoNotFit) {
  const std::uint64_t high = std::uint64_t{1} << 63;
  HostileMetadata index = ValidIndex();
  index.tensors[kGrid].shape = {high, 2};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-11")) << "elements";
  index.tensors[kGrid].shape = {high, 1};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-11")) << "bytes";
  index = ValidIndex();
  index.objects[0].size = ~std::uint64_t{0};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-11")) << "sum";
}

TEST(MetadataRules, R_IDX_11_EmptyTensorMayHaveHugeExtents) {
  HostileMetadata index = ValidIndex();
  index.tensors[kEmpty].shape = {~std::uint64_t{0}, ~std::uint64_t{0}, 0};
  EXPECT_EQ(Check(index), Status());
}

TEST(MetadataRules, R_IDX_12_EmptyTensorWithGeometryOrShards) {
  HostileMetadata index = ValidIndex();
  index.tensors[kEmpty].grid = HostileGrid{.cuts = {}, .cut_counts = {0, 0}};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-12"));
  index = ValidIndex();
  index.tensors[kEmpty].shards = {{0, 0}};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-12"));
}

TEST(MetadataRules, R_IDX_12_NotExactlyOneGeometry) {
  HostileMetadata index = ValidIndex();
  index.tensors[kGrid].grid.reset();
  EXPECT_THAT(Check(index), Corrupt("R-IDX-12"));
  index = ValidIndex();
  index.tensors[kGrid].boxes = HostileBoxes{};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-12"));
}

TEST(MetadataRules, R_IDX_12_NoShards) {
  HostileMetadata index = ValidIndex();
  index.tensors[kBricks].shards.clear();
  index.tensors[kBricks].boxes->boxes.clear();
  EXPECT_THAT(Check(index), Corrupt("R-IDX-12"));
}

TEST(MetadataRules, R_IDX_13_GridInAManifest) {
  HostileMetadata manifest = ValidManifest();
  manifest.tensors[0].boxes.reset();
  manifest.tensors[0].grid = HostileGrid{.cuts = {2}, .cut_counts = {1, 0}};
  EXPECT_THAT(CheckManifest(manifest, kValidCounts), Corrupt("R-IDX-13"));
}

TEST(MetadataRules, R_IDX_13_BoxListThatIsAGrid) {
  HostileMetadata index = ValidIndex();
  index.tensors[kBricks].boxes->boxes = {0, 0, 2, 2, 0, 2, 2, 2, 2, 0, 2, 2, 2, 2, 2, 2};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-13"));
}

TEST(MetadataRules, R_IDX_14_GridCuts) {
  const std::pair<const char*, HostileGrid> damages[] = {
      {"cut at 0", {.cuts = {0}, .cut_counts = {1, 0}}},
      {"cut at the extent", {.cuts = {4}, .cut_counts = {1, 0}}},
      {"a count too few", {.cuts = {2}, .cut_counts = {1}}},
      {"a count too many", {.cuts = {2}, .cut_counts = {1, 0, 0}}},
      {"counts above cuts", {.cuts = {}, .cut_counts = {1, 0}}},
      {"counts below cuts", {.cuts = {2, 3}, .cut_counts = {1, 0}}},
      {"more cells than shards", {.cuts = {2, 3}, .cut_counts = {1, 1}}},
      {"more of them before the last dimension", {.cuts = {1, 2, 1}, .cut_counts = {2, 1}}},
      {"fewer cells than shards", {.cuts = {}, .cut_counts = {0, 0}}},
      {"cells that do not fit", {.cuts = {2}, .cut_counts = {~0u, ~0u}}},
  };
  for (const auto& [name, grid] : damages) {
    HostileMetadata index = ValidIndex();
    index.tensors[kGrid].grid = grid;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-14")) << name;
  }
}

TEST(MetadataRules, R_IDX_14_CutsNotAscending) {
  for (const auto& cuts : {std::vector<std::uint64_t>{3, 2}, std::vector<std::uint64_t>{2, 2}}) {
    HostileMetadata index = ValidIndex();
    index.tensors[kGrid].grid = HostileGrid{.cuts = cuts, .cut_counts = {2, 0}};
    index.tensors[kGrid].shards = {{0, 2}, {1, 2}, {1, 7}};
    index.blobs[1].record_count = 8;
    index.blobs[1].shard_count = 7;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-14"));
  }
}

TEST(MetadataRules, R_IDX_14_RunsThatDoNotGiveTheShardCount) {
  HostileMetadata index = ValidIndex();
  index.tensors[kRuns].grid->run_cut_counts = {{2, 0}};
  index.tensors[kRuns].grid->run_cuts = {{2, 3}};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-14"));
}

TEST(MetadataRules, R_IDX_15_RunCuts) {
  using Counts = std::optional<std::vector<std::uint32_t>>;
  using Cuts = std::optional<std::vector<std::uint64_t>>;
  const std::tuple<const char*, Counts, Cuts> damages[] = {
      {"cut at 0", {{1, 0}}, {{0}}},
      {"cut at the end of the cell", {{1, 0}}, {{5}}},
      {"a count too few", {{1}}, {{3}}},
      {"a count too many", {{1, 0, 0}}, {{3}}},
      {"counts above cuts", {{1, 1}}, {{3}}},
      {"counts below cuts", {{0, 0}}, {{3}}},
      {"no cuts", {{1, 0}}, std::nullopt},
      {"no counts", std::nullopt, {{3}}},
      {"all zero", {{0, 0}}, Cuts(std::in_place)},
  };
  for (const auto& [name, counts, cuts] : damages) {
    HostileMetadata index = ValidIndex();
    index.tensors[kRuns].grid->run_cut_counts = counts;
    index.tensors[kRuns].grid->run_cuts = cuts;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-15")) << name;
  }
}

TEST(MetadataRules, R_IDX_15_RunCutsNotAscending) {
  HostileMetadata index = ValidIndex();
  index.tensors[kRuns].grid->run_cut_counts = {{2, 0}};
  index.tensors[kRuns].grid->run_cuts = {{3, 2}};
  index.tensors[kRuns].shards.push_back({1, 7});
  index.blobs[1].record_count = 8;
  index.blobs[1].shard_count = 7;
  EXPECT_THAT(Check(index), Corrupt("R-IDX-15"));
}

TEST(MetadataRules, R_IDX_16_BoxesThatDoNotLieInTheShape) {
  const std::uint64_t huge = ~std::uint64_t{0};
  const std::pair<const char*, std::pair<std::size_t, std::uint64_t>> damages[] = {
      {"extent 0", {2, 0}},
      {"extent too large", {15, 2}},
      {"offset too large", {12, 3}},
      {"offset that wraps", {12, huge}},
      {"extent that wraps", {15, huge}},
  };
  for (const auto& [name, damage] : damages) {
    HostileMetadata index = ValidIndex();
    index.tensors[kBricks].boxes->boxes[damage.first] = damage.second;
    EXPECT_THAT(Check(index), Corrupt("R-IDX-16")) << name;
  }
}

TEST(MetadataRules, R_IDX_16_NumbersThatDoNotFitTheShards) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{15}, std::size_t{20}}) {
    HostileMetadata index = ValidIndex();
    index.tensors[kBricks].boxes->boxes.resize(size, 1);
    EXPECT_THAT(Check(index), Corrupt("R-IDX-16")) << size;
  }
}

TEST(MetadataRules, R_IDX_16_BoxesNotSorted) {
  HostileMetadata index = ValidIndex();
  index.tensors[kBricks].boxes->boxes = {0, 1, 2, 3, 0, 0, 2, 1, 2, 0, 2, 3, 2, 3, 2, 1};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-16"));
}

TEST(MetadataRules, R_IDX_16_SameBoxTwice) {
  HostileMetadata index = ValidIndex();
  index.tensors[kBricks].boxes->boxes = {0, 0, 2, 1, 0, 0, 2, 1, 2, 0, 2, 3, 2, 3, 2, 1};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-16"));
}

TEST(MetadataRules, R_IDX_04_MoreBoxesThanAllowed) {
  EXPECT_EQ(Check(ValidIndex(), Limits{.box_list_shard_count_max = 4}), Status());
  EXPECT_THAT(Check(ValidIndex(), Limits{.box_list_shard_count_max = 3}),
              Breaks(Code::kLimitExceeded, "R-IDX-04"));
}

TEST(MetadataRules, R_IDX_17_Runs) {
  const std::pair<const char*, std::vector<std::uint64_t>> damages[] = {
      {"all full", {0, 8, 0, 8}},
      {"empty", {0, 8, 3, 3}},
      {"backwards", {0, 8, 4, 3}},
      {"beyond the box", {0, 8, 3, 9}},
      {"one too few", {0, 8}},
      {"one too many", {0, 8, 3, 6, 0, 1}},
      {"none", {}},
  };
  for (const auto& [name, runs] : damages) {
    HostileMetadata manifest = ValidManifest();
    manifest.tensors[0].boxes->runs = runs;
    EXPECT_THAT(CheckManifest(manifest, kValidCounts), Corrupt("R-IDX-17")) << name;
  }
}

TEST(MetadataRules, R_IDX_18_Hole) {
  HostileMetadata index = ValidIndex();
  index.tensors[kBricks].boxes->boxes = {0, 0, 2, 1, 0, 1, 2, 2, 2, 0, 2, 3, 2, 3, 2, 1};
  index.raw_bytes = ValidIndex().raw_bytes;
  const Status status = Check(index);
  EXPECT_THAT(status, Corrupt("R-IDX-18"));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("[0, 3] is in 0 shards"));
  EXPECT_EQ(status.place().tensor, "bricks");
}

TEST(MetadataRules, R_IDX_18_Overlap) {
  HostileMetadata index = ValidIndex();
  index.tensors[kBricks].boxes->boxes = {0, 0, 2, 2, 0, 1, 2, 3, 2, 0, 2, 3, 2, 3, 2, 1};
  const Status status = Check(index);
  EXPECT_THAT(status, Corrupt("R-IDX-18"));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("[0, 1] is in 2 shards"));
}

TEST(MetadataRules, R_IDX_04_MoreCornersThanAllowed) {
  EXPECT_THAT(Check(ValidIndex(), Limits{.tiling_corner_count_max = 8}),
              Breaks(Code::kLimitExceeded, "R-IDX-04"));
}

TEST(MetadataRules, R_IDX_04_MoreCornersPerShardThanAllowed) {
  EXPECT_THAT(Check(ValidIndex(), Limits{.tiling_corners_per_shard_max = 3}),
              Breaks(Code::kLimitExceeded, "R-IDX-04"));
  EXPECT_EQ(Check(ValidIndex(), Limits{.tiling_corners_per_shard_max = 4}), Status());
}

TEST(MetadataRules, R_IDX_18_OverlappingRunsOfOneBoxInAManifest) {
  HostileMetadata manifest = ValidManifest();
  manifest.tensors[0].boxes =
      HostileBoxes{.boxes = {0, 0, 2, 4, 0, 0, 2, 4}, .runs = {{0, 5, 4, 8}}};
  EXPECT_THAT(CheckManifest(manifest, kValidCounts), Corrupt("R-IDX-18"));
  manifest.tensors[0].boxes->runs = {{0, 4, 4, 8}};
  EXPECT_EQ(CheckManifest(manifest, kValidCounts), Status());
}

TEST(MetadataRules, R_IDX_19_BlobThatDoesNotExist) {
  HostileMetadata index = ValidIndex();
  index.tensors[kGrid].shards[1].blob = 2;
  EXPECT_THAT(Check(index), Corrupt("R-IDX-19"));
  index = ValidIndex();
  index.objects[2].shard.blob = 2;
  EXPECT_THAT(Check(index), Corrupt("R-IDX-19"));
  HostileMetadata manifest = ValidManifest();
  manifest.tensors[0].shards[1].blob = 1;
  EXPECT_THAT(CheckManifest(manifest, kValidCounts), Corrupt("R-IDX-19"));
}

TEST(MetadataRules, R_IDX_20_RecordOfTwoShards) {
  HostileMetadata index = ValidIndex();
  index.tensors[kGrid].shards[1].first_record = 1;
  EXPECT_THAT(Check(index), Corrupt("R-IDX-20"));
}

TEST(MetadataRules, R_IDX_20_RecordsBeyondTheTable) {
  HostileMetadata index = ValidIndex();
  index.objects[2].shard.first_record = 6;  // two records of seven
  EXPECT_THAT(Check(index), Corrupt("R-IDX-20"));
  index.objects[2].shard.first_record = ~0u;
  EXPECT_THAT(Check(index), Corrupt("R-IDX-20"));
}

TEST(MetadataRules, R_IDX_20_RecordOfNoShard) {
  HostileMetadata index = ValidIndex();
  index.blobs[0].record_count = 7;
  EXPECT_THAT(Check(index), Corrupt("R-IDX-20"));
  EXPECT_THAT(CheckManifest(ValidManifest(), {.record_count = 4, .shard_count = 3}),
              Corrupt("R-IDX-20"));
}

TEST(MetadataRules, R_IDX_20_MoreShardsThanRecords) {
  HostileMetadata index = ValidIndex();
  index.blobs[0].record_count = 1;
  index.blobs[1].record_count = 1;
  const Status status = Check(index);
  EXPECT_THAT(status, Corrupt("R-IDX-20"));
  // Before any shard is looked at.
  EXPECT_THAT(status.message(), ::testing::HasSubstr("records are left"));
}

TEST(MetadataRules, R_IDX_21_BlobLayout) {
  using Blob = sealpoint::testing::HostileBlob;
  const std::pair<const char*, void (*)(Blob*)> damages[] = {
      {"no length", [](Blob* b) { b->file_size = 0; }},
      {"length of no page", [](Blob* b) { b->file_size = 8200; }},
      {"table in the header", [](Blob* b) { b->table_offset = 64; }},
      {"table of no section", [](Blob* b) { b->table_offset = 4104; }},
      // Group list 64, 6 records of 64, trailer 256: 704 bytes.
      {"table too far behind", [](Blob* b) { b->table_offset = 8192 - 640; }},
      {"table that wraps", [](Blob* b) { b->table_offset = ~std::uint64_t{63}; }},
      {"a shard too many", [](Blob* b) { b->shard_count = 7; }},
      {"a shard too few", [](Blob* b) { b->shard_count = 5; }},
  };
  for (const auto& [name, damage] : damages) {
    HostileMetadata index = ValidIndex();
    damage(&index.blobs[0]);
    EXPECT_THAT(Check(index), Corrupt("R-IDX-21")) << name;
  }
  HostileMetadata index = ValidIndex();
  index.blobs[0].table_offset = 8192 - 704;
  EXPECT_EQ(Check(index), Status());
}

TEST(MetadataRules, R_IDX_04_BlobAboveItsSizeLimit) {
  EXPECT_THAT(Check(ValidIndex(), Limits{.blob_size_max_bytes = 4096}),
              Breaks(Code::kLimitExceeded, "R-IDX-04"));
}

TEST(MetadataRules, R_IDX_21_ShardCountOfAManifest) {
  EXPECT_THAT(CheckManifest(ValidManifest(), {.record_count = 3, .shard_count = 2}),
              Corrupt("R-IDX-21"));
}

TEST(MetadataRules, R_IDX_21_BlobWithoutRecordsIsLegal) {
  HostileMetadata index = ValidIndex();
  index.blobs.push_back({.id = 3, .table_offset = 128});
  EXPECT_EQ(Check(index), Status());
  index.blobs.back().table_offset = 192;
  EXPECT_THAT(Check(index), Corrupt("R-IDX-21"));
}

TEST(MetadataRules, R_IDX_22_EmptyObjectWithARecord) {
  HostileMetadata index = ValidIndex();
  index.objects[1].shard = {0, 1};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-22"));
  index.objects[1].shard = {1, 0};
  EXPECT_THAT(Check(index), Corrupt("R-IDX-22"));
}

TEST(MetadataRules, R_IDX_23_RawBytes) {
  for (const int difference : {-1, 1}) {
    HostileMetadata index = ValidIndex();
    index.raw_bytes += static_cast<std::uint64_t>(difference);
    EXPECT_THAT(Check(index), Corrupt("R-IDX-23"));
  }
}

TEST(MetadataRules, MisalignedMemoryIsTheCallersFault) {
  Bytes bytes = EncodeHostileIndex(ValidIndex());
  bytes.insert(bytes.begin(), 4, std::byte{0});
  const auto owner = std::make_shared<const Bytes>(std::move(bytes));
  const auto metadata =
      Metadata::Decode(MetadataKind::kIndex, owner, ByteSpan(*owner).subspan(4), Limits{});
  EXPECT_EQ(metadata.status().code(), Code::kInvalidArgument);
}

TEST(MetadataRules, ManifestWithoutCountsIsNotDecoded) {
  const auto owner = std::make_shared<const Bytes>(EncodeHostileManifest(ValidManifest()));
  EXPECT_EQ(
      Metadata::Decode(MetadataKind::kManifest, owner, ByteSpan(*owner), Limits{}).status().code(),
      Code::kInvalidArgument);
}

}  // namespace
}  // namespace sealpoint::internal::metadata
