// SPDX-License-Identifier: Apache-2.0
#include "tests/support/damage/containers.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace sealpoint::testing {
namespace {

Region BoxRegion(Shape offset, Shape extent) {
  return Region::Of({std::move(offset), std::move(extent)});
}

// Bytes that a codec compresses well.
Bytes RampBytes(std::uint64_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i / 512);
  return bytes;
}

MiniTensor CodedTensor(std::string name, DType dtype, Codec codec, std::uint64_t chunk_size,
                       const Bytes& bytes) {
  const Shape shape = {bytes.size() / DTypeSizeBytes(dtype)};
  MiniTensor tensor = CutTensor(std::move(name), dtype, shape, bytes, {Region::Whole(shape)});
  tensor.codec = codec;
  tensor.chunk_size = chunk_size;
  return tensor;
}

}  // namespace

MiniSpec LayoutsSpec() {
  MiniSpec spec;
  // Cut like laid bricks, so that the shards form no grid.
  const Region brick = BoxRegion({0, 1}, {2, 3});
  spec.tensors.push_back(CutTensor(
      "bricks", DType::kF32, {4, 4}, NoiseBytes(1, 64),
      {BoxRegion({0, 0}, {2, 1}), brick, BoxRegion({2, 0}, {2, 3}), BoxRegion({2, 3}, {2, 1})},
      {0, 0, 1, 1}));
  spec.tensors.push_back(
      CutTensor("bricks with runs", DType::kF32, {4, 4}, NoiseBytes(2, 64),
                {BoxRegion({0, 0}, {2, 1}), Region{brick.box, {0, 4}}, Region{brick.box, {4, 6}},
                 BoxRegion({2, 0}, {2, 3}), BoxRegion({2, 3}, {2, 1})},
                {0, 0, 1, 1, 1}));
  spec.tensors.push_back({.name = "empty", .dtype = DType::kF16, .shape = {0, 3}});
  spec.tensors.push_back(CutTensor("grid", DType::kF32, {4, 6}, NoiseBytes(3, 96),
                                   {BoxRegion({0, 0}, {2, 6}), BoxRegion({2, 0}, {2, 6})}, {0, 1}));
  spec.tensors.push_back(CutTensor(
      "grid with runs", DType::kF32, {10}, NoiseBytes(4, 40),
      {Region{{{0}, {5}}, {0, 3}}, Region{{{0}, {5}}, {3, 5}}, BoxRegion({5}, {5})}, {0, 1, 0}));
  spec.tensors.back().placement = {"data: shard dim 0"};
  spec.tensors.push_back(
      CutTensor("scalar", DType::kInt64, {}, NoiseBytes(5, 8), {Region::Whole({})}, {1}));
  spec.objects = {{.name = "nothing", .bytes = {}},
                  {.name = "rng", .bytes = NoiseBytes(6, 100), .blob = 1}};
  spec.mesh = {{"data", 2}};
  spec.provenance = {{"user", "ada"}};
  return spec;
}

MiniSpec DTypesSpec() {
  MiniSpec spec;
  for (const DTypeInfo& dtype : RegisteredDTypes()) {
    const auto id = static_cast<std::uint64_t>(dtype.dtype);
    spec.tensors.push_back(CutTensor(std::string(dtype.name), dtype.dtype, {3},
                                     NoiseBytes(id, 3 * dtype.size_bytes), {Region::Whole({3})}));
  }
  spec.tensors.push_back({.name = "unregistered",
                          .dtype = static_cast<DType>(40000),
                          .shape = {2},
                          .element_size = 32,
                          .shards = {{.region = Region::Whole({2}), .bytes = NoiseBytes(40, 64)}}});
  return spec;
}

MiniSpec CodedSpec() {
  MiniSpec spec;
  spec.tensors = {CodedTensor("zstd", DType::kUInt8, Codec::kZstd, 4096, RampBytes(6000)),
                  CodedTensor("split", DType::kF32, Codec::kByteSplitZstd, 4096, RampBytes(6000)),
                  CodedTensor("page", DType::kUInt8, Codec::kZstd, 65536, RampBytes(65536))};
  Bytes mixed = RampBytes(4096);
  const Bytes noise = NoiseBytes(8, 4096);
  mixed.insert(mixed.end(), noise.begin(), noise.end());
  mixed.resize(3 * 4096);
  spec.tensors.push_back(CodedTensor("raw between", DType::kUInt8, Codec::kZstd, 4096, mixed));
  spec.objects = {{.name = "coded", .bytes = RampBytes(10000), .codec = Codec::kZstd}};
  return spec;
}

MiniSpec GroupsSpec() {
  constexpr std::uint64_t kCount = 66;
  std::vector<Region> regions;
  for (std::uint64_t i = 0; i < kCount; ++i) regions.push_back(BoxRegion({i}, {1}));
  MiniSpec spec;
  spec.tensors.push_back(
      CutTensor("cells", DType::kInt64, {kCount}, NoiseBytes(9, 8 * kCount), regions));
  return spec;
}

MiniSpec LargeSpec() {
  MiniSpec spec;
  int blob = 0;
  for (const std::uint64_t size : {65536u, 65535u, 70000u}) {
    spec.tensors.push_back(CutTensor("bytes-" + std::to_string(size), DType::kUInt8, {size},
                                     NoiseBytes(size, size), {Region::Whole({size})}, {blob}));
    spec.tensors.push_back(CutTensor("small-" + std::to_string(size), DType::kUInt8, {100},
                                     NoiseBytes(size + 1, 100), {Region::Whole({100})}, {blob}));
    ++blob;
  }
  return spec;
}

MiniSpec OlderVersion(MiniSpec spec) {
  spec.attempt = OtherAttempt();
  spec.step = 6;
  for (MiniTensor& tensor : spec.tensors) {
    for (MiniShard& shard : tensor.shards) {
      for (std::byte& b : shard.bytes) b ^= std::byte{0x5a};
    }
  }
  for (MiniObject& object : spec.objects) {
    for (std::byte& b : object.bytes) b ^= std::byte{0x5a};
  }
  return spec;
}

DamageCase MakeDamageCase(std::string name, MiniSpec spec) {
  Corpus corpus;
  CorpusEntry& entry = corpus.Add(name, spec);
  return {.name = std::move(name),
          .spec = std::move(spec),
          .container = std::move(entry.container),
          .content = std::move(entry.content)};
}

const std::deque<DamageCase>& SmallDamageCases() {
  static const std::deque<DamageCase> cases = [] {
    std::deque<DamageCase> made;
    made.push_back(MakeDamageCase("layouts", LayoutsSpec()));
    made.push_back(MakeDamageCase("dtypes", DTypesSpec()));
    made.push_back(MakeDamageCase("coded", CodedSpec()));
    made.push_back(MakeDamageCase("groups", GroupsSpec()));
    return made;
  }();
  return cases;
}

}  // namespace sealpoint::testing
