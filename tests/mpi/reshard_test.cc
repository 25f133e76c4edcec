// SPDX-License-Identifier: Apache-2.0
//
// Each of the layouts that training uses, loaded into each other one.
#include <gtest/gtest.h>

#include <string>

#include "sealpoint/collective_reader.h"
#include "tests/support/ranks/with_ranks.h"
#include "tests/support/state/local_tensor.h"
#include "tests/support/state/save_job.h"

namespace sealpoint::testing {
namespace {

// A layer with its optimizer state, and stacked experts.
const std::vector<TensorSpec>& State() {
  static const std::vector<TensorSpec> state = {
      {.name = "weight", .dtype = DType::kF32, .shape = {26, 300}},
      {.name = "weight.exp_avg", .dtype = DType::kF32, .shape = {26, 300}},
      {.name = "bias", .dtype = DType::kUInt8, .shape = {300}},
      {.name = "experts", .dtype = DType::kUInt8, .shape = {6, 5, 70}},
  };
  return state;
}

Bytes Whole(const TensorSpec& tensor) {
  return NoiseBytes(tensor.name.size(), ElementsOf(tensor.shape) * DTypeSizeBytes(tensor.dtype));
}

// What one rank has of each tensor of the state.
using Layouts = std::vector<LocalLayout>;
struct Scheme {
  const char* name;
  Layouts (*place)(int rank, int size);
};

Layouts PlaceAll(const MeshAxes& axes, int rank, const std::vector<Placement>& placements) {
  const Mesh mesh = Mesh::Create(axes).value();
  Layouts layouts;
  for (std::size_t i = 0; i < State().size(); ++i) {
    layouts.push_back(PlaceTensor(mesh, rank, State()[i].shape, placements[i]).value());
  }
  return layouts;
}

// Two axes where the number of ranks allows it.
MeshAxes Axes(int size, const char* outer, const char* inner) {
  const auto all = static_cast<std::uint32_t>(size);
  const std::uint32_t in = all % 2 == 0 ? 2 : 1;
  return {{outer, all / in}, {inner, in}};
}
MeshAxes Axis(int size, const char* name) { return {{name, static_cast<std::uint32_t>(size)}}; }

Layouts TensorParallel(int rank, int size) {
  const Shard rows{.dim = 0, .axis = "tensor", .rule = SplitRule::kEven};
  const Shard columns{.dim = 1, .axis = "tensor", .rule = SplitRule::kEven};
  return PlaceAll(Axis(size, "tensor"), rank, {{columns}, {columns}, {rows}, {columns}});
}
Layouts DataParallel(int rank, int size) {
  const Placement all = {Replicate{"data"}};
  return PlaceAll(Axis(size, "data"), rank, {all, all, all, all});
}
Layouts FullySharded(int rank, int size) {
  const Placement rows = {Shard{.dim = 0, .axis = "data"}};
  return PlaceAll(Axis(size, "data"), rank, {rows, rows, rows, rows});
}
Layouts HybridSharded(int rank, int size) {
  const Placement rows = {Replicate{"replica"}, Shard{.dim = 0, .axis = "shard"}};
  return PlaceAll(Axes(size, "replica", "shard"), rank, {rows, rows, rows, rows});
}
Layouts TwoDimensional(int rank, int size) {
  const Placement both = {Shard{.dim = 1, .axis = "tensor"}, Shard{.dim = 0, .axis = "data"}};
  const Placement one = {Shard{.dim = 0, .axis = "tensor"}, Shard{.dim = 0, .axis = "data"}};
  return PlaceAll(Axes(size, "data", "tensor"), rank, {both, both, one, both});
}
Layouts ExpertParallel(int rank, int size) {
  const Placement all = {Replicate{"data"}, Replicate{"expert"}};
  const Placement experts = {Shard{.dim = 0, .axis = "expert"}, Replicate{"data"}};
  return PlaceAll(Axes(size, "data", "expert"), rank, {all, all, all, experts});
}
Layouts FlatOptimizer(int rank, int size) {
  const Placement weight = {Shard{.dim = 1, .axis = "tensor"}, Replicate{"data"}};
  const Placement state = {Shard{.dim = 1, .axis = "tensor"}, ShardFlat{.axes = {"data"}}};
  const Placement bias = {Replicate{"tensor"}, ShardFlat{.axes = {"data"}, .unit = 64}};
  return PlaceAll(Axes(size, "data", "tensor"), rank, {weight, state, bias, weight});
}
// All tensors of one buffer; here each part lies in a local buffer of its own tensor.
Layouts FlatBuckets(int rank, int size) {
  std::vector<BucketMember> members;
  std::uint64_t bucket = 0;
  for (const TensorSpec& tensor : State()) {
    members.push_back({.box = Region::Whole(tensor.shape).box, .offset = bucket});
    bucket += (ElementsOf(tensor.shape) + 127) / 128 * 128;
  }
  const auto count = static_cast<std::uint64_t>(size);
  Layouts layouts(State().size());
  for (LocalLayout& layout : layouts) layout = {.shape = {(bucket + count - 1) / count}};
  for (BucketPart& part :
       PlaceBucket(members, bucket, count, static_cast<std::uint64_t>(rank)).value()) {
    layouts[part.member].parts.push_back(
        {.region = std::move(part.region), .local_offset = part.local_offset});
    layouts[part.member].replicas = {rank};
  }
  return layouts;
}

constexpr Scheme kSchemes[] = {{"tensor-parallel", TensorParallel},
                               {"data-parallel", DataParallel},
                               {"fully-sharded", FullySharded},
                               {"hybrid-sharded", HybridSharded},
                               {"2-d", TwoDimensional},
                               {"expert-parallel", ExpertParallel},
                               {"flat-optimizer", FlatOptimizer},
                               {"flat-buckets", FlatBuckets}};

Bytes LocalOf(std::size_t tensor, const LocalLayout& layout) {
  const TensorSpec& spec = State()[tensor];
  return LocalTensor(Whole(spec), spec.shape, DTypeSizeBytes(spec.dtype), layout);
}

Status SaveAs(SaveJob& job, const Scheme& scheme) {
  Declaration declaration;
  const Layouts layouts = scheme.place(job.rank(), job.size());
  std::vector<std::vector<std::size_t>> slots;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    TensorSpec spec = State()[i];
    spec.chunk_size_bytes = kChunkSizeMinBytes;
    slots.push_back(declaration.Add(spec, layouts[i]).value());
  }
  Sources sources(declaration);
  std::vector<Bytes> memory;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    memory.push_back(LocalOf(i, layouts[i]));
    EXPECT_TRUE(sources.Bind(slots[i], layouts[i], MemoryView::Host(memory.back())).ok());
  }
  return SaveInMode(*job.saver, SaveTarget::Directory(job.path(scheme.name)), {}, sources).status();
}

void LoadAs(SaveJob& job, CollectiveReader& reader, const Scheme& scheme) {
  const Layouts layouts = scheme.place(job.rank(), job.size());
  ReadRequest request;
  std::vector<Bytes> memory;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    memory.emplace_back(LocalOf(i, layouts[i]).size(), std::byte{0xee});
  }
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    request.Add(State()[i].name, layouts[i], MutableMemoryView::Host(memory[i]));
  }
  const auto report = reader.Load(request, {.coverage = OnMismatch::kError});
  ASSERT_TRUE(report.ok()) << report.error().ToString();
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    EXPECT_EQ(memory[i], LocalOf(i, layouts[i])) << State()[i].name;
  }
  EXPECT_EQ(report->all_bytes_read, report->all_bytes_requested);
}

TEST(ReshardTest, EachLayoutLoadsIntoEachOther) {
  for (const int size : RankCounts()) {
    WithRanks(size, [](Communicator& comm) {
      SaveJob job(comm);
      for (const Scheme& saved : kSchemes) {
        const Status status = SaveAs(job, saved);
        ASSERT_TRUE(status.ok()) << saved.name << ": " << status.ToString();
        const auto reader = CollectiveReader::Open(comm, job.path(saved.name));
        ASSERT_TRUE(reader.ok()) << reader.error().ToString();
        for (const Scheme& wanted : kSchemes) {
          SCOPED_TRACE(std::string(saved.name) + " into " + wanted.name);
          LoadAs(job, **reader, wanted);
        }
      }
    });
  }
}

}  // namespace
}  // namespace sealpoint::testing
