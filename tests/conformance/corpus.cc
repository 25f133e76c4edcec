// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/corpus.h"

#include <algorithm>

namespace sealpoint::testing {
namespace {

// The inverse of ExtractRegion, element by element as the definition says.
void PlaceRegion(Bytes& tensor, const Shape& shape, std::uint64_t element_size,
                 const MiniShard& shard) {
  const Region& region = shard.region;
  auto from = shard.bytes.begin();
  for (std::uint64_t element = region.run.begin; element < region.run.end; ++element) {
    std::uint64_t rest = element;
    std::uint64_t position = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      position += (region.box.offset[d] + rest % region.box.extent[d]) * stride;
      rest /= region.box.extent[d];
      stride *= shape[d];
    }
    std::copy_n(from, element_size,
                tensor.begin() + static_cast<std::ptrdiff_t>(position * element_size));
    from += static_cast<std::ptrdiff_t>(element_size);
  }
}

CorpusContent ContentOf(const MiniSpec& spec) {
  CorpusContent content;
  for (const MiniTensor& tensor : spec.tensors) {
    std::uint64_t size = tensor.element_size;
    if (size == 0) size = DTypeSizeBytes(tensor.dtype);
    Bytes& bytes = content.tensors[tensor.name];
    bytes.resize(ElementCount(tensor.shape).value() * size);
    for (const MiniShard& shard : tensor.shards) PlaceRegion(bytes, tensor.shape, size, shard);
  }
  for (const MiniObject& object : spec.objects) content.objects[object.name] = object.bytes;
  return content;
}

}  // namespace

CorpusEntry& Corpus::Add(std::string name, const MiniSpec& spec) {
  entries_.push_back({.name = std::move(name),
                      .container = BuildMini(spec),
                      .links = {},
                      .directories = {},
                      .content = ContentOf(spec),
                      .spec = spec,
                      .is_alone = true});
  return entries_.back();
}

MiniSpec BaseSpec() {
  MiniSpec spec;
  // Cut as bricks are laid: no grid has these shards.
  spec.tensors.push_back(CutTensor("bricks", DType::kF32, {4, 4}, NoiseBytes(1, 64),
                                   {Region::Of({{0, 0}, {2, 1}}), Region::Of({{0, 1}, {2, 3}}),
                                    Region::Of({{2, 0}, {2, 3}}), Region::Of({{2, 3}, {2, 1}})},
                                   {0, 0, 1, 1}));
  spec.tensors.push_back({.name = "empty", .dtype = DType::kF16, .shape = {0, 3}});
  spec.tensors.push_back(CutTensor("grid", DType::kF32, {4, 6}, NoiseBytes(2, 96),
                                   {Region::Of({{0, 0}, {2, 6}}), Region::Of({{2, 0}, {2, 6}})},
                                   {0, 1}));
  spec.tensors.push_back(CutTensor(
      "runs", DType::kF32, {10}, NoiseBytes(3, 40),
      {Region{{{0}, {5}}, {0, 3}}, Region{{{0}, {5}}, {3, 5}}, Region::Of({{5}, {5}})}, {0, 1, 0}));
  spec.tensors.back().placement = {"data: shard dim 0"};
  spec.tensors.push_back(
      CutTensor("scalar", DType::kInt64, {}, NoiseBytes(4, 8), {Region::Whole({})}, {1}));
  spec.objects = {{.name = "args", .bytes = NoiseBytes(5, 9), .media_type = "text/plain"},
                  {.name = "nothing", .bytes = {}},
                  {.name = "rng", .bytes = NoiseBytes(6, 5000), .blob = 1}};
  spec.mesh = {{"data", 2}};
  spec.provenance = {{"user", "ada"}};
  return spec;
}

MiniSpec OneRankSpec() {
  MiniSpec spec;
  const Shape shape = {6, 4};
  spec.tensors.push_back(
      CutTensor("w", DType::kBf16, shape, NoiseBytes(7, 48), {Region::Whole(shape)}));
  spec.objects = {{.name = "rng", .bytes = NoiseBytes(8, 100)}};
  return spec;
}

Corpus BuildCorpus() {
  Corpus corpus;
  AddGoodLayouts(corpus);
  AddGoodDirectories(corpus);
  AddBadDirectories(corpus);
  AddBadHeaders(corpus);
  AddBadMarkers(corpus);
  AddBadIndexes(corpus);
  AddBadBlobs(corpus);
  AddBadRecords(corpus);
  AddCoded(corpus);
  AddLimits(corpus);
  AddFeatures(corpus);
  AddDeltas(corpus);
  AddSeveralDamages(corpus);
  return corpus;
}

}  // namespace sealpoint::testing
