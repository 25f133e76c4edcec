// SPDX-License-Identifier: Apache-2.0
//
// Makes checkpoints of one small state, stored in different ways, and of states that differ from it
// in one thing, in the directory that the argument names. With a second argument N: two checkpoints
// of N MiB, large/a and large/b, that differ in one element. Besides they have a tensor that is
// read in several pieces, and ends in zeros that begin in the first.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/commit.h"
#include "sealpoint/engine.h"
#include "sealpoint/placement.h"
#include "tests/cli/take.h"

namespace {

using namespace sealpoint;  // a program of one file

struct Tensor {
  DType dtype{};
  Shape shape{};
  Bytes bytes{};
};
struct Object {
  std::string media_type{};
  std::string content{};
};
struct State {
  std::map<std::string, Tensor> tensors{};
  std::map<std::string, Object> objects{};
};

template <typename T, typename Make>
Tensor MakeTensor(DType dtype, Shape shape, const Make& make) {
  std::vector<T> values(ElementCount(shape).value_or(0));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = make(i);
  const auto bytes = std::as_bytes(std::span(values));
  return {.dtype = dtype, .shape = std::move(shape), .bytes = Bytes(bytes.begin(), bytes.end())};
}

// Not the same in any two places, and exact in f32.
float Value(std::size_t i) { return static_cast<float>((i * 2654435761u) % 65521) / 4096 - 8; }

State MakeState() {
  State state;
  state.tensors["layer.w"] = MakeTensor<float>(DType::kF32, {96, 64}, Value);
  // More than one block of the content digest; finite bf16 of both signs.
  state.tensors["layer.b"] = MakeTensor<std::uint16_t>(DType::kBf16, {300, 258}, [](std::size_t i) {
    return static_cast<std::uint16_t>((i * 40503u) % 0x1000 + 0x3800 + (i % 2) * 0x8000);
  });
  state.tensors["moment"] = MakeTensor<float>(
      DType::kF32, {8, 1024}, [](std::size_t i) { return i < 3000 ? Value(i) + 0.5F : 0.0F; });
  state.tensors["count"] = MakeTensor<std::int64_t>(
      DType::kInt64, {4, 4}, [](std::size_t i) { return static_cast<std::int64_t>(i) - 5; });
  state.tensors["scale"] = MakeTensor<double>(DType::kF64, {}, [](std::size_t) { return 0.1; });
  state.tensors["q"] = MakeTensor<std::uint8_t>(
      DType::kF8E4M3Fn, {16, 16}, [](std::size_t i) { return static_cast<std::uint8_t>(i % 127); });
  state.tensors["unused"] = {.dtype = DType::kF16, .shape = {0, 8}};
  state.objects["rng"] = {"application/octet-stream", std::string("\x01\x00\xff", 3)};
  state.objects["arguments"] = {"application/json", std::string(70'000, ' ') + "{}"};
  // A conversion makes one where there is none.
  state.objects["sealpoint.tree"] = {"application/vnd.sealpoint.tree+json",
                                     R"({"count":{"$":"tensor","name":"count"}})"};
  return state;
}

// What region holds of the tensor, element by element.
Bytes Gather(const Tensor& tensor, const Region& region) {
  const std::size_t size = DTypeSizeBytes(tensor.dtype);
  Bytes bytes;
  for (std::uint64_t i = region.run.begin; i < region.run.end; ++i) {
    std::uint64_t rest = i;
    std::uint64_t at = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = tensor.shape.size(); d-- > 0;) {
      at += (region.box.offset[d] + rest % region.box.extent[d]) * stride;
      rest /= region.box.extent[d];
      stride *= tensor.shape[d];
    }
    const auto* element = tensor.bytes.data() + at * size;
    bytes.insert(bytes.end(), element, element + size);
  }
  return bytes;
}

struct Way {
  MeshAxes axes{{"data", 1}};
  Placement matrix{Replicate{"data"}};  // of tensors of two dimensions; others are on rank 0
  Codec codec = Codec::kNone;
  std::uint64_t chunk_size_bytes = 4 * kKiB;
};

void Save(Engine& engine, const std::string& path, const State& state, const Way& way = {}) {
  Check(engine.storage().CreateDirectories(path));
  const AttemptId attempt = Take(AttemptId::Random());
  const Mesh mesh = Take(Mesh::Create(way.axes));
  std::vector<BlobSummary> summaries;
  for (int rank = 0; rank < mesh.size(); ++rank) {
    auto writer = Take(BlobWriter::Create(engine, path, {.attempt = attempt, .step = 7}));
    for (const auto& [name, tensor] : state.tensors) {
      TensorSpec spec{.name = name, .dtype = tensor.dtype, .shape = tensor.shape};
      spec.chunk_size_bytes = way.chunk_size_bytes;
      spec.codec = way.codec;
      if (tensor.shape.size() == 2) spec.placement = ToStrings(way.matrix);
      if (tensor.bytes.empty() || tensor.shape.size() != 2) {
        if (rank > 0) continue;
        Check(tensor.bytes.empty()
                  ? writer->AddEmpty(spec)
                  : writer->Add(spec, Region::Whole(tensor.shape), MemoryView::Host(tensor.bytes)));
        continue;
      }
      const LocalLayout layout = Take(PlaceTensor(mesh, rank, tensor.shape, way.matrix));
      if (layout.replicas.front() != rank) continue;
      for (const LocalPart& part : layout.parts) {
        const Bytes bytes = Gather(tensor, part.region);
        Check(writer->Add(spec, part.region, MemoryView::Host(bytes)));
      }
    }
    if (rank == 0) {
      for (const auto& [name, object] : state.objects) {
        Check(writer->AddObject({.name = name, .media_type = object.media_type},
                                AsBytes(object.content)));
      }
    }
    for (BlobSummary& summary : Take(writer->Finish())) summaries.push_back(std::move(summary));
  }
  Take(Commit(engine.storage(), path,
              {.attempt = attempt, .step = 7, .mesh = mesh.axes(), .provenance = {{"who", path}}},
              summaries));
}

void SaveWays(Engine& engine, const std::string& directory, const State& state) {
  Save(engine, directory + "/one", state);
  Save(engine, directory + "/grid", state,
       {.axes = {{"data", 2}, {"tensor", 2}},
        .matrix = {Shard{.dim = 0, .axis = "data"}, Shard{.dim = 1, .axis = "tensor"}}});
  Save(engine, directory + "/four", state,
       {.axes = {{"data", 4}},
        .matrix = {ShardFlat{.axes = {"data"}}},
        .codec = Codec::kByteSplitZstd,
        .chunk_size_bytes = 16 * kKiB});
  Save(engine, directory + "/coded", state, {.codec = Codec::kByteSplitZstd});
}

template <typename T>
void Set(Tensor& tensor, std::size_t element, T value) {
  std::memcpy(tensor.bytes.data() + element * sizeof(T), &value, sizeof(T));
}

void SaveOthers(Engine& engine, const std::string& directory, const State& state) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::map<std::string, std::function<void(State&)>> changes = {
      {"element", [](State& s) { Set(s.tensors["layer.w"], 2000, 3.5F); }},
      {"nan",
       [&](State& s) {
         Set(s.tensors["layer.w"], 1500, kNan);
         Set(s.tensors["layer.w"], 1501, kInfinity);
         Set(s.tensors["layer.w"], 1502, -1.0F);
         Set(s.tensors["layer.w"], 4000, Value(4000) * 2);
         Set(s.tensors["layer.b"], 70'000, std::uint16_t{0x3f80});
       }},
      {"renamed",
       [](State& s) {
         s.tensors["model.layer.w"] = s.tensors["layer.w"];
         s.tensors.erase("layer.w");
       }},
      {"reshaped", [](State& s) { s.tensors["layer.w"].shape = {64, 96}; }},
      {"retyped", [](State& s) { s.tensors["layer.w"].dtype = DType::kInt32; }},
      {"fewer", [](State& s) { s.tensors.erase("unused"); }},
      {"media", [](State& s) { s.objects["rng"].media_type = "text/plain"; }},
      {"object", [](State& s) { s.objects["arguments"].content[69'999] = '\t'; }},
  };
  for (const auto& [name, change] : changes) {
    State changed = state;
    change(changed);
    Save(engine, directory + "/" + name, changed);
  }
}

void SaveLarge(Engine& engine, const std::string& directory, std::uint64_t size_mib) {
  constexpr std::uint64_t kTensors = 16;
  for (const char* const name : {"/large/a", "/large/b"}) {
    State state;
    for (std::uint64_t i = 0; i < kTensors; ++i) {
      Tensor& tensor = state.tensors["layer." + std::to_string(i)];
      tensor = MakeTensor<float>(DType::kF32, {size_mib * kMiB / kTensors / sizeof(float)},
                                 [&](std::size_t k) { return Value(k + i); });
    }
    constexpr std::uint64_t kZerosFrom = 1'500'000;
    state.tensors["big"] = MakeTensor<float>(
        DType::kF32, {2304, 1024}, [](std::size_t k) { return k < kZerosFrom ? Value(k) : 0; });
    if (std::string(name) == "/large/b") Set(state.tensors["layer.5"], 1234, 0.25F);
    Save(engine, directory + name, state, {.chunk_size_bytes = kChunkSizeDefaultBytes});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const std::string directory = argv[1];
  const auto engine = Take(Engine::Create());
  if (argc > 2) {
    SaveLarge(*engine, directory, std::strtoull(argv[2], nullptr, 10));
    return 0;
  }
  const State state = MakeState();
  SaveWays(*engine, directory, state);
  SaveOthers(*engine, directory, state);
  return 0;
}
