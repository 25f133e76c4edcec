// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SCALE_SCENARIO_H_
#define SEALPOINT_TESTS_SCALE_SCENARIO_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/placement.h"

namespace sealpoint::testing {

// A tensor of a training and how it lies on the mesh.
struct ScenarioTensor {
  TensorSpec tensor{};
  Placement placement{};
};

// Optimizer state in one flat buffer per tensor-parallel rank, cut over the ranks of `flat_axes`.
struct ScenarioBucket {
  std::vector<ScenarioTensor> members{};  // placed for tensor parallelism, replicated else
  std::vector<std::string> flat_axes{};
};

// A training state: what each rank of a mesh holds of which tensors.
struct Scenario {
  std::string name{};
  std::string title{};
  Mesh mesh{};
  // Tensors that only the ranks with some coordinate on this axis hold; none where it is empty.
  std::string place_axis{};
  std::vector<std::vector<ScenarioTensor>> by_place{};  // one list per coordinate
  std::vector<ScenarioTensor> everywhere{};
  std::vector<ScenarioBucket> buckets{};
};

// What a rank has of a tensor. The order is that in which a framework would walk its modules.
using HeldVisitor = std::function<void(const TensorSpec& tensor, const LocalLayout& layout)>;
void ForEachHeld(const Scenario& scenario, int rank, const HeldVisitor& visit);

// Elements of the model: of the tensors of group "model".
std::uint64_t ParameterCount(const Scenario& scenario);
std::uint64_t TensorCount(const Scenario& scenario);

// A GPT on tensor, pipeline and data parallelism; parameters in bf16, replicated over data; main
// parameters and both moments in f32, each cut flat over data (Megatron's distributed optimizer
// without buckets: as many shards as it can give).
struct MegatronSizes {
  std::uint32_t tensor_ranks = 8;
  std::uint32_t pipeline_ranks = 16;
  std::uint32_t data_ranks = 128;
  std::uint64_t layers = 128;
  std::uint64_t hidden = 25600;
  std::uint64_t vocabulary = 51200;
};
Scenario MegatronScenario(const MegatronSizes& sizes);

// A dense decoder, dimension 0 of everything chunked over the shard axis, replicated over the
// other; parameters and both moments in f32.
struct HsdpSizes {
  std::uint32_t shard_ranks = 512;
  std::uint32_t replica_ranks = 32;
  std::uint64_t layers = 162;
  std::uint64_t hidden = 24576;
  std::uint64_t inner = 65536;
  std::uint64_t key_value = 2048;
  std::uint64_t vocabulary = 128256;
};
Scenario HsdpScenario(const HsdpSizes& sizes);

// A mixture of experts: each expert is a tensor of its own on the ranks of its place on the expert
// axis, cut for tensor parallelism, its optimizer state flat over data; all else tensor parallel
// and its optimizer state in one bucket over data and experts.
struct ExpertSizes {
  std::uint32_t data_ranks = 16;
  std::uint32_t expert_ranks = 128;
  std::uint32_t tensor_ranks = 8;
  std::uint64_t layers = 64;
  std::uint64_t experts = 128;
  std::uint64_t hidden = 8192;
  std::uint64_t inner = 4864;
  std::uint64_t vocabulary = 131072;
};
Scenario ExpertScenario(const ExpertSizes& sizes);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SCALE_SCENARIO_H_
