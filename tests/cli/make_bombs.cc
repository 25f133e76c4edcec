// SPDX-License-Identifier: Apache-2.0
//
// Makes small checkpoints that ask for much memory, in the directory that the argument names:
// chunks/ (every one of 60,000 chunks is damaged), placement/ (4,000 tensors that share one
// vector of long placements), shards/ (a tensor of 32 dimensions in 120,000 shards). And two that
// are only large: few/ and many/ (2,000 and 16,000 tensors of 16 elements).
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "schema/index_generated.h"
#include "sealpoint/storage.h"
#include "tests/support/container/mini_container.h"

namespace sealpoint::testing {
namespace {

void Store(const std::string& directory, const MiniSpec& spec) {
  StoreFiles(*PosixStorage(), directory, BuildMini(spec).files);
}

// Each element is a shard, so that 64 bytes of payload and 64 of the table are a chunk.
void MakeChunks(const std::string& directory) {
  constexpr std::uint64_t kCount = 60'000;
  MiniTensor tensor{.name = std::string(900, 'w'), .dtype = DType::kUInt8, .shape = {kCount}};
  for (std::uint64_t i = 0; i < kCount; ++i) {
    tensor.shards.push_back({.region = Region::Of({{i}, {1}}), .bytes = Bytes(1)});
  }
  MiniSpec spec;
  spec.tensors.push_back(std::move(tensor));
  spec.hooks.chunk_area = [](int, Bytes& area) {
    constexpr std::size_t kFirstChunk = 128;
    for (std::size_t at = kFirstChunk; at < area.size(); at += 64) area[at] = std::byte{0xff};
  };
  Store(directory, spec);
}

void MakeTensors(const std::string& directory, int count) {
  MiniSpec spec;
  for (int i = 0; i < count; ++i) {
    MiniTensor tensor{.name = "w" + std::to_string(i), .dtype = DType::kF32, .shape = {16}};
    tensor.shards.push_back({.region = Region::Whole(tensor.shape), .bytes = Bytes(64)});
    spec.tensors.push_back(std::move(tensor));
  }
  Store(directory, spec);
}

class IndexMaker {
 public:
  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  Bytes Finish(const std::vector<flatbuffers::Offset<fb::Tensor>>& tensors,
               const std::vector<flatbuffers::Offset<fb::Blob>>& blobs, std::uint64_t raw_bytes) {
    const auto all_tensors = builder_.CreateVector(tensors);
    const auto objects = builder_.CreateVector(std::vector<flatbuffers::Offset<fb::Object>>());
    const auto all_blobs = builder_.CreateVector(blobs);
    const auto mesh = builder_.CreateVector(std::vector<flatbuffers::Offset<fb::MeshAxis>>());
    const auto provenance =
        builder_.CreateVector(std::vector<flatbuffers::Offset<fb::ProvenanceEntry>>());
    fb::IndexBuilder index(builder_);
    index.add_tensors(all_tensors);
    index.add_objects(objects);
    index.add_blobs(all_blobs);
    index.add_digest_algorithm(1);
    index.add_raw_bytes(raw_bytes);
    index.add_mesh(mesh);
    index.add_provenance(provenance);
    builder_.Finish(index.Finish(), "SPIX");
    const auto bytes = std::as_bytes(std::span(builder_.GetBufferPointer(), builder_.GetSize()));
    return Bytes(bytes.begin(), bytes.end());
  }

 private:
  flatbuffers::FlatBufferBuilder builder_;
};

std::string NumberedName(std::size_t number) {
  char digits[16];
  std::snprintf(digits, sizeof(digits), "%06zu", number);
  return digits;
}

// Empty tensors: they need no blob.
void MakePlacement(const std::string& directory) {
  constexpr std::size_t kTensorCount = 4'000;
  constexpr std::size_t kPlacementCount = 32;
  IndexMaker maker;
  flatbuffers::FlatBufferBuilder& builder = maker.builder();
  std::vector<flatbuffers::Offset<flatbuffers::String>> texts(
      kPlacementCount, builder.CreateString(std::string(1000, 'p')));
  const auto placement = builder.CreateVector(texts);
  const auto shape = builder.CreateVector(std::vector<std::uint64_t>(32, 0));
  const auto shards = builder.CreateVectorOfStructs(std::vector<fb::ShardRef>());
  std::vector<flatbuffers::Offset<fb::Tensor>> tensors;
  for (std::size_t i = 0; i < kTensorCount; ++i) {
    const auto name = builder.CreateString(NumberedName(i));
    fb::TensorBuilder tensor(builder);
    tensor.add_name(name);
    tensor.add_shape(shape);
    tensor.add_shards(shards);
    tensor.add_dtype(12);
    tensor.add_element_size(4);
    tensor.add_chunk_size_log2(12);
    tensor.add_placement(placement);
    tensors.push_back(tensor.Finish());
  }
  MiniSpec spec;
  spec.hooks.index_bytes = [&](Bytes& bytes) { bytes = maker.Finish(tensors, {}, 0); };
  Store(directory, spec);
}

// 32 dimensions, of which one is cut: a region takes far more memory than the cut does. The blobs
// are not there.
void MakeShards(const std::string& directory) {
  constexpr std::uint64_t kCount = 120'000;
  MiniTensor tensor{
      .name = "w", .dtype = DType::kUInt8, .shape = std::vector<std::uint64_t>(32, 1)};
  tensor.shape.front() = kCount;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    Box box{.offset = std::vector<std::uint64_t>(32), .extent = std::vector<std::uint64_t>(32, 1)};
    box.offset.front() = i;
    const int blob = i < kCount / 2 ? 0 : 1;  // neither passes the limit of shards of a box list
    tensor.shards.push_back(
        {.region = Region::Of(std::move(box)), .bytes = Bytes(1), .blob = blob});
  }
  MiniSpec spec;
  spec.tensors.push_back(std::move(tensor));
  MiniContainer container = BuildMini(spec);
  for (const auto& [number, blob] : container.blobs) container.files.erase(blob.name);
  StoreFiles(*PosixStorage(), directory, container.files);
}

}  // namespace
}  // namespace sealpoint::testing

int main(int argc, char** argv) {
  if (argc != 2) return 64;
  const std::string directory = argv[1];
  sealpoint::testing::MakeChunks(directory + "/chunks");
  sealpoint::testing::MakePlacement(directory + "/placement");
  sealpoint::testing::MakeShards(directory + "/shards");
  sealpoint::testing::MakeTensors(directory + "/few", 2'000);
  sealpoint::testing::MakeTensors(directory + "/many", 16'000);
  return 0;
}
