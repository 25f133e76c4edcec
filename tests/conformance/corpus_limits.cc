// SPDX-License-Identifier: Apache-2.0
//
// Files at a limit and just beyond it, and manifests that differ from their index by a hair.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/corpus.h"
#include "tests/conformance/transcribe.h"

namespace sealpoint::testing {
namespace {

Region RunOf(const Box& box, std::uint64_t begin, std::uint64_t end) {
  return {box, {.begin = begin, .end = end}};
}

MiniSpec OneTensor(const Shape& shape, const std::vector<Region>& regions) {
  MiniSpec spec;
  const std::uint64_t size = ElementCount(shape).value();
  spec.tensors.push_back(CutTensor("w", DType::kUInt8, shape, NoiseBytes(18, size), regions));
  return spec;
}

// A tensor of eight dimensions of 2. The first run is the lower half and the first element of the
// upper one; the others are runs of the upper half. No dimension is spanned by all of the boxes
// that these consist of, so that each box, and the tensor, has 2^8 corners.
MiniSpec TensorOfManyCorners(const std::vector<std::uint64_t>& cuts) {
  constexpr std::uint64_t kHalf = 128;
  const Box whole{.offset = Shape(8, 0), .extent = Shape(8, 2)};
  Box upper = whole;
  upper.offset[0] = upper.extent[0] = 1;
  std::vector<Region> regions = {RunOf(whole, 0, kHalf + 1)};
  std::uint64_t begin = 1;
  for (const std::uint64_t cut : cuts) {
    regions.push_back(RunOf(upper, begin, cut));
    begin = cut;
  }
  regions.push_back(RunOf(upper, begin, kHalf));
  return OneTensor(Shape(8, 2), regions);
}

// Another manifest of blob 0, which its trailer, and thereby the index, pins.
template <typename Damage>
void AddManifestOf(Corpus& corpus, std::string name, MiniSpec spec, const Damage& damage) {
  spec.hooks.manifest_bytes = [damage](int blob, Bytes& bytes) {
    if (blob != 0) return;
    HostileMetadata manifest = TranscribeManifest(bytes);
    damage(manifest);
    bytes = EncodeHostileManifest(manifest);
  };
  corpus.Add(std::move(name), spec);
}

void AddManifests(Corpus& corpus) {
  AddManifestOf(
      corpus, "bad-R-IDX-18-overlapping_runs_in_a_manifest",
      OneTensor({10}, {RunOf({{0}, {5}}, 0, 3), RunOf({{0}, {5}}, 3, 5), Region::Of({{5}, {5}})}),
      [](HostileMetadata& c) { c.tensors[0].boxes->runs = {{0, 3, 2, 5, 0, 5}}; });
  // Two chunks of two shards, or of one.
  AddManifestOf(corpus, "bad-R-IDX-21-shards_of_a_manifest",
                OneTensor({8192}, {Region::Of({{0}, {4096}}), Region::Of({{4096}, {4096}})}),
                [](HostileMetadata& c) {
                  c.tensors[0].boxes->boxes = {0, 8192};
                  c.tensors[0].shards.pop_back();
                });
  AddManifestOf(corpus, "bad-R-BLB-07-chunk_size_of_an_object", BaseSpec(),
                [](HostileMetadata& c) { c.objects[0].chunk_size_log2 = 13; });
  AddManifestOf(corpus, "bad-R-BLB-07-shape_of_an_empty_tensor", BaseSpec(),
                [](HostileMetadata& c) { c.tensors[1].shape = {0, 4}; });
  MiniSpec twice = BaseSpec();
  twice.hooks.manifest_bytes = [empty = HostileTensor()](int blob, Bytes& bytes) mutable {
    HostileMetadata manifest = TranscribeManifest(bytes);
    if (blob == 0) {
      empty = manifest.tensors[1];
    } else {
      manifest.tensors.insert(manifest.tensors.begin() + 1, empty);
    }
    bytes = EncodeHostileManifest(manifest);
  };
  corpus.Add("good-empty_tensor_declared_twice", twice);
}

}  // namespace

void AddLimits(Corpus& corpus) {
  corpus.Add("good-corners_at_the_limit", TensorOfManyCorners({65}));
  // The encoder refuses it: the index of another one, with cuts at 33 and 65.
  MiniSpec beyond = TensorOfManyCorners({32, 64});
  beyond.hooks.index_bytes = [](Bytes& buffer) {
    const Bytes good = buffer;
    HostileMetadata index = TranscribeIndex(good);
    index.tensors[0].boxes->runs = {{0, 129, 1, 33, 33, 65, 65, 128}};
    buffer = EncodeHostileIndex(index);
    CopyPins(good, buffer);
  };
  corpus.Add("bad-R-IDX-04-corners", beyond);
  AddManifests(corpus);
}

}  // namespace sealpoint::testing
