// SPDX-License-Identifier: Apache-2.0
//
// What a reader must accept.
#include <cstdint>
#include <string>

#include "lib/format/constants.h"
#include "tests/conformance/corpus.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

Region BoxRegion(std::vector<std::uint64_t> offset, std::vector<std::uint64_t> extent) {
  return Region::Of({std::move(offset), std::move(extent)});
}

// One tensor "w" of f32, cut into these regions, the i-th in blob i.
MiniSpec TensorInBlobs(const Shape& shape, const std::vector<Region>& regions) {
  MiniSpec spec;
  std::vector<int> blobs;
  for (std::size_t i = 0; i < regions.size(); ++i) blobs.push_back(static_cast<int>(i));
  const std::uint64_t size = ElementCount(shape).value() * 4;
  spec.tensors.push_back(CutTensor("w", DType::kF32, shape, NoiseBytes(11, size), regions, blobs));
  return spec;
}

MiniSpec GridOf3Dimensions() {
  std::vector<Region> regions;
  for (const std::uint64_t i : {0u, 1u}) {
    for (const std::uint64_t j : {0u, 2u}) {
      for (const std::uint64_t k : {0u, 3u}) regions.push_back(BoxRegion({i, j, k}, {1, 2, 3}));
    }
  }
  MiniSpec spec;
  spec.tensors.push_back(CutTensor("w", DType::kF32, {2, 4, 6}, NoiseBytes(12, 192), regions));
  return spec;
}

MiniSpec AllDTypes() {
  MiniSpec spec;
  for (const DTypeInfo& dtype : RegisteredDTypes()) {
    const auto id = static_cast<std::uint64_t>(dtype.dtype);
    spec.tensors.push_back(CutTensor(std::string(dtype.name), dtype.dtype, {3},
                                     NoiseBytes(id, 3 * dtype.size_bytes), {Region::Whole({3})}));
  }
  return spec;
}

MiniSpec UnregisteredDType() {
  MiniSpec spec;
  spec.tensors.push_back(
      {.name = "w",
       .dtype = static_cast<DType>(40000),
       .shape = {5},
       .element_size = 32,
       .shards = {{.region = Region::Whole({5}), .bytes = NoiseBytes(13, 160)}}});
  return spec;
}

// Shards at and below the length from which they begin at a page, of several chunks.
MiniSpec LargeShards() {
  MiniSpec spec;
  for (const std::uint64_t size : {65536u, 65535u, 70000u}) {
    spec.tensors.push_back(CutTensor("bytes-" + std::to_string(size), DType::kUInt8, {size},
                                     NoiseBytes(size, size), {Region::Whole({size})}));
  }
  return spec;
}

// Records of three groups.
MiniSpec ManyRecords() {
  MiniSpec spec;
  for (std::uint64_t i = 0; i < 150; ++i) {
    // Not "t" + …: g++ 12 falsely warns of it at -O3 (-Wrestrict).
    const std::string name = std::string("t").append(std::to_string(1000 + i));
    spec.tensors.push_back(CutTensor(name, DType::kF64, {}, NoiseBytes(i, 8), {Region::Whole({})}));
  }
  return spec;
}

MiniSpec Objects() {
  MiniSpec spec;
  spec.objects = {{.name = "empty", .bytes = {}, .media_type = "text/plain"},
                  {.name = "exactly a chunk", .bytes = NoiseBytes(14, 4096)},
                  {.name = "größer", .bytes = NoiseBytes(15, 9000), .blob = 1},
                  {.name = "one byte", .bytes = NoiseBytes(16, 1), .blob = 1}};
  return spec;
}

MiniSpec MeshAndProvenance() {
  MiniSpec spec = OneRankSpec();
  spec.mesh = {{"pipeline", 2}, {"data", 4}, {"tensor", 8}};
  spec.tensors[0].placement = {"pipeline: stage 0", "data: replicate", "tensor: shard dim 1"};
  spec.provenance = {{"git", "0123abcd"},
                     {"metric.eval_loss", "1.832"},
                     {"sealpoint.version", "0.1.0"},
                     {"tag.release", "candidate"},
                     {"user", "ada"},
                     {"x.note", ""}};
  return spec;
}

Bytes TextBytes(std::string_view text) {
  const ByteSpan bytes = AsBytes(text);
  return Bytes(bytes.begin(), bytes.end());
}

}  // namespace

void AddGoodLayouts(Corpus& corpus) {
  corpus.Add("good-everything", BaseSpec());
  corpus.Add("good-nothing", MiniSpec{});
  corpus.Add("good-one_rank", OneRankSpec());
  corpus.Add("good-grid_1d", TensorInBlobs({10}, {BoxRegion({0}, {3}), BoxRegion({3}, {7})}));
  corpus.Add("good-grid_2d",
             TensorInBlobs({4, 6}, {BoxRegion({0, 0}, {1, 4}), BoxRegion({0, 4}, {1, 2}),
                                    BoxRegion({1, 0}, {3, 4}), BoxRegion({1, 4}, {3, 2})}));
  corpus.Add("good-grid_3d", GridOf3Dimensions());
  corpus.Add("good-run_cuts", TensorInBlobs({4, 6}, {Region{{{0, 0}, {4, 3}}, {0, 5}},
                                                     Region{{{0, 0}, {4, 3}}, {5, 12}},
                                                     Region{{{0, 3}, {4, 3}}, {0, 12}}}));
  corpus.Add("good-box_list",
             TensorInBlobs({4, 4}, {BoxRegion({0, 0}, {2, 1}), BoxRegion({0, 1}, {2, 3}),
                                    BoxRegion({2, 0}, {2, 3}), BoxRegion({2, 3}, {2, 1})}));
  corpus.Add("good-box_list_with_runs",
             TensorInBlobs({4, 4}, {BoxRegion({0, 0}, {2, 1}), Region{{{0, 1}, {2, 3}}, {0, 4}},
                                    Region{{{0, 1}, {2, 3}}, {4, 6}}, BoxRegion({2, 0}, {2, 3}),
                                    BoxRegion({2, 3}, {2, 1})}));
  corpus.Add("good-scalar", TensorInBlobs({}, {Region::Whole({})}));
  MiniSpec empty;
  empty.tensors = {{.name = "w", .dtype = DType::kF32, .shape = {3, 0}}};
  corpus.Add("good-empty_tensor", empty);
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 40;
  empty.tensors = {{.name = "v", .dtype = DType::kF32, .shape = {kHuge, 0, kHuge}},
                   {.name = "w", .dtype = DType::kF32, .shape = {kHuge, kHuge, 0}}};
  corpus.Add("good-empty_tensor_of_huge_extents", empty);
  corpus.Add("good-objects", Objects());
  corpus.Add("good-all_dtypes", AllDTypes());
  corpus.Add("good-unregistered_dtype", UnregisteredDType());
  corpus.Add("good-large_shards", LargeShards());
  corpus.Add("good-many_records", ManyRecords());
  corpus.Add("good-mesh_and_provenance", MeshAndProvenance());

  MiniSpec controls = OneRankSpec();
  controls.provenance = {{"x.log", std::string("line\n\0\x7f \xc2\x80 \xf0\x9f\x8e\x89", 15)}};
  corpus.Add("good-control_characters_in_a_provenance_value", controls);

  MiniSpec no_step = OneRankSpec();
  no_step.step = kNoStep;
  corpus.Add("good-no_step", no_step);
  MiniSpec child = OneRankSpec();
  child.parent = OtherAttempt();
  child.sequence = 42;
  corpus.Add("good-parent", child);
  MiniSpec untagged = OneRankSpec();
  untagged.hooks.blob_header = [](int, format::FileHeader& header) { header.attempt = {}; };
  corpus.Add("good-blob_without_attempt", untagged);
  MiniSpec compat = OneRankSpec();
  compat.hooks.blob_header = [](int, format::FileHeader& header) { header.features.compat = 4; };
  compat.hooks.index_header = [](format::FileHeader& header) { header.features.compat = 6; };
  compat.hooks.marker = [](format::Marker& marker) { marker.features.compat = 6; };
  corpus.Add("good-unknown_compat_features", compat);
}

void AddGoodDirectories(Corpus& corpus) {
  CorpusEntry& leftovers = corpus.Add("good-R-DIR-03-leftovers", OneRankSpec());
  leftovers.container.files[format::BlobName(BlobId(OtherAttempt()))] = NoiseBytes(20, 10);
  leftovers.container.files[format::IndexName(OtherAttempt())] = NoiseBytes(21, 20);
  leftovers.container.files[format::UnpublishedMarkerName(leftovers.container.attempt)] =
      leftovers.container.marker();
  leftovers.container.files[format::ProbeName(OtherAttempt())] = {};

  CorpusEntry& foreign = corpus.Add("good-R-DIR-04-foreign_names", OneRankSpec());
  foreign.container.files["README.md"] = TextBytes("not of ours\n");
  foreign.container.files["commit"] = {};
  foreign.container.files["01.blob"] = NoiseBytes(22, 10);
  foreign.container.files["ABABABABABABABABABABABABABABABAB.blob"] = NoiseBytes(23, 10);
  foreign.container.files[format::ProbeName(OtherAttempt()) + "_0"] = {};
  foreign.directories = {"optimizer", "KEEP", format::BlobName(BlobId(OtherAttempt()))};

  CorpusEntry& later = corpus.Add("good-R-DIR-03-kinds_of_a_later_version", OneRankSpec());
  const std::string attempt = later.container.attempt.ToHex();
  const std::string other = OtherAttempt().ToHex();
  for (const std::string& name :
       {attempt + ".sig", attempt + ".parity-0", other + ".0123456789abcdef"}) {
    later.container.files[name] = NoiseBytes(24, 30);
  }
  CorpusEntry& not_reserved = corpus.Add("good-R-DIR-04-endings_of_others", OneRankSpec());
  for (const std::string& name : {attempt + ".0123456789abcdefg", attempt + ".Sig",
                                  attempt + ".sig.json", attempt + ".", attempt + "-sig"}) {
    not_reserved.container.files[name] = NoiseBytes(25, 30);
  }

  CorpusEntry& keep = corpus.Add("good-keep", OneRankSpec());
  keep.container.files["KEEP"] = {};

  CorpusEntry& links = corpus.Add("good-links", OneRankSpec());
  std::map<std::string, Bytes> targets;
  for (auto& [name, bytes] : links.container.files) {
    const std::string target = "target-" + std::to_string(targets.size());
    links.links[name] = target;
    targets[target] = std::move(bytes);
  }
  links.container.files = std::move(targets);
}

}  // namespace sealpoint::testing
