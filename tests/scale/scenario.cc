// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/scenario.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "lib/base/errors.h"

namespace sealpoint::testing {
namespace {

using internal::StrCat;

// How the matrices and vectors of a block are cut for tensor parallelism.
struct Weight {
  std::string name{};
  Shape shape{};
  int cut = -1;  // dimension, or none
};

PlacementRule TensorRule(const Weight& weight, const std::string& axis) {
  if (weight.cut < 0) return Replicate{axis};
  return Shard{.dim = weight.cut, .axis = axis, .rule = SplitRule::kEven};
}

TensorSpec SpecOf(const std::string& prefix, const Weight& weight, DType dtype,
                  const Placement& placement) {
  return {.name = prefix + weight.name,
          .dtype = dtype,
          .shape = weight.shape,
          .group = prefix == "model." ? "model" : "optimizer",
          .placement = ToStrings(placement)};
}

const char* const kStates[] = {"optimizer.fp32_param.", "optimizer.exp_avg.",
                               "optimizer.exp_avg_sq."};

std::vector<Weight> GptBlock(std::uint64_t layer, std::uint64_t h) {
  const std::string at = StrCat("decoder.layers.", layer, ".");
  return {{at + "self_attention.linear_qkv.layer_norm_weight", {h}},
          {at + "self_attention.linear_qkv.layer_norm_bias", {h}},
          {at + "self_attention.linear_qkv.weight", {3 * h, h}, 0},
          {at + "self_attention.linear_qkv.bias", {3 * h}, 0},
          {at + "self_attention.linear_proj.weight", {h, h}, 1},
          {at + "self_attention.linear_proj.bias", {h}},
          {at + "mlp.linear_fc1.layer_norm_weight", {h}},
          {at + "mlp.linear_fc1.layer_norm_bias", {h}},
          {at + "mlp.linear_fc1.weight", {4 * h, h}, 0},
          {at + "mlp.linear_fc1.bias", {4 * h}, 0},
          {at + "mlp.linear_fc2.weight", {h, 4 * h}, 1},
          {at + "mlp.linear_fc2.bias", {h}}};
}

std::vector<Weight> LlamaBlock(std::uint64_t layer, const HsdpSizes& sizes) {
  const std::string at = StrCat("layers.", layer, ".");
  const std::uint64_t h = sizes.hidden;
  return {{at + "input_layernorm.weight", {h}},
          {at + "self_attn.q_proj.weight", {h, h}},
          {at + "self_attn.k_proj.weight", {sizes.key_value, h}},
          {at + "self_attn.v_proj.weight", {sizes.key_value, h}},
          {at + "self_attn.o_proj.weight", {h, h}},
          {at + "post_attention_layernorm.weight", {h}},
          {at + "mlp.gate_proj.weight", {sizes.inner, h}},
          {at + "mlp.up_proj.weight", {sizes.inner, h}},
          {at + "mlp.down_proj.weight", {h, sizes.inner}}};
}

std::uint32_t CoordinateOn(const Mesh& mesh, int rank, const std::string& axis) {
  return mesh.CoordinatesOf(rank).value()[mesh.Find(axis).value()];
}

void VisitTensors(const Scenario& scenario, int rank, const std::vector<ScenarioTensor>& tensors,
                  const HeldVisitor& visit) {
  for (const ScenarioTensor& member : tensors) {
    visit(member.tensor,
          PlaceTensor(scenario.mesh, rank, member.tensor.shape, member.placement).value());
  }
}

// This rank's number among those that a bucket is cut over, and their count.
std::pair<std::uint64_t, std::uint64_t> PlaceInBucket(const Mesh& mesh, int rank,
                                                      const std::vector<std::string>& axes) {
  std::uint64_t count = 1;
  std::uint64_t index = 0;
  for (const std::string& axis : axes) {
    const std::uint64_t size = mesh.axes()[mesh.Find(axis).value()].second;
    count *= size;
    index = index * size + CoordinateOn(mesh, rank, axis);
  }
  return {index, count};
}

// The ranks that hold the same part of a member: all along the axes that replicate it and that the
// bucket is not cut over.
std::vector<int> ReplicasOf(const Scenario& scenario, int rank, const ScenarioTensor& member,
                            const std::vector<std::string>& flat_axes) {
  Placement placement;
  for (const PlacementRule& rule : member.placement) {
    const auto* const replicate = std::get_if<Replicate>(&rule);
    const bool is_flat = replicate != nullptr && std::find(flat_axes.begin(), flat_axes.end(),
                                                           replicate->axis) != flat_axes.end();
    placement.push_back(is_flat ? PlacementRule(LocalOnly{replicate->axis}) : rule);
  }
  return PlaceTensor(scenario.mesh, rank, member.tensor.shape, placement).value().replicas;
}

void VisitBucket(const Scenario& scenario, int rank, const ScenarioBucket& bucket,
                 const HeldVisitor& visit) {
  std::vector<BucketMember> members;
  std::uint64_t size = 0;
  for (const ScenarioTensor& member : bucket.members) {
    const LocalLayout local =
        PlaceTensor(scenario.mesh, rank, member.tensor.shape, member.placement).value();
    members.push_back({.box = local.parts.at(0).region.box, .offset = size});
    size += local.parts.at(0).region.element_count();
  }
  const auto [index, count] = PlaceInBucket(scenario.mesh, rank, bucket.flat_axes);
  for (BucketPart& part : PlaceBucket(members, size, count, index).value()) {
    const ScenarioTensor& member = bucket.members[part.member];
    LocalLayout layout{.shape = {part.region.element_count()},
                       .parts = {{.region = std::move(part.region), .local_offset = 0}},
                       .replicas = ReplicasOf(scenario, rank, member, bucket.flat_axes)};
    visit(member.tensor, layout);
  }
}

std::uint64_t Elements(const std::vector<ScenarioTensor>& tensors) {
  std::uint64_t sum = 0;
  for (const ScenarioTensor& member : tensors) {
    if (member.tensor.group == "model") sum += ElementCount(member.tensor.shape).value();
  }
  return sum;
}

}  // namespace

void ForEachHeld(const Scenario& scenario, int rank, const HeldVisitor& visit) {
  VisitTensors(scenario, rank, scenario.everywhere, visit);
  if (!scenario.place_axis.empty()) {
    const std::uint32_t place = CoordinateOn(scenario.mesh, rank, scenario.place_axis);
    VisitTensors(scenario, rank, scenario.by_place[place], visit);
  }
  for (const ScenarioBucket& bucket : scenario.buckets) {
    VisitBucket(scenario, rank, bucket, visit);
  }
}

std::uint64_t ParameterCount(const Scenario& scenario) {
  std::uint64_t sum = Elements(scenario.everywhere);
  for (const auto& tensors : scenario.by_place) sum += Elements(tensors);
  return sum;
}

std::uint64_t TensorCount(const Scenario& scenario) {
  std::uint64_t sum = scenario.everywhere.size();
  for (const auto& tensors : scenario.by_place) sum += tensors.size();
  for (const ScenarioBucket& bucket : scenario.buckets) sum += bucket.members.size();
  return sum;
}

Scenario MegatronScenario(const MegatronSizes& sizes) {
  Scenario scenario{.name = "megatron",
                    .title = StrCat("TP ", sizes.tensor_ranks, " x PP ", sizes.pipeline_ranks,
                                    " x DP ", sizes.data_ranks, ", distributed optimizer"),
                    .mesh = Mesh::Create({{"pipeline", sizes.pipeline_ranks},
                                          {"data", sizes.data_ranks},
                                          {"tensor", sizes.tensor_ranks}})
                                .value(),
                    .place_axis = "pipeline"};
  scenario.by_place.resize(sizes.pipeline_ranks);
  const auto add = [&](std::size_t stage, const Weight& weight) {
    std::vector<ScenarioTensor>& tensors = scenario.by_place[stage];
    const PlacementRule cut = TensorRule(weight, "tensor");
    const Placement model = {LocalOnly{"pipeline"}, cut, Replicate{"data"}};
    tensors.push_back({SpecOf("model.", weight, DType::kBf16, model), model});
    const Placement flat = {LocalOnly{"pipeline"}, cut, ShardFlat{.axes = {"data"}}};
    for (const char* state : kStates) {
      tensors.push_back({SpecOf(state, weight, DType::kF32, flat), flat});
    }
  };
  const std::uint64_t h = sizes.hidden;
  const std::size_t last = sizes.pipeline_ranks - 1;
  add(0, {"embedding.word_embeddings.weight", {sizes.vocabulary, h}, 0});
  for (std::uint64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::size_t stage = layer * sizes.pipeline_ranks / sizes.layers;
    for (const Weight& weight : GptBlock(layer, h)) add(stage, weight);
  }
  add(last, {"decoder.final_layernorm.weight", {h}});
  add(last, {"decoder.final_layernorm.bias", {h}});
  add(last, {"output_layer.weight", {sizes.vocabulary, h}, 0});
  return scenario;
}

Scenario HsdpScenario(const HsdpSizes& sizes) {
  Scenario scenario{
      .name = "hsdp",
      .title = StrCat("FSDP ", sizes.shard_ranks, " x replicas ", sizes.replica_ranks),
      .mesh =
          Mesh::Create({{"replica", sizes.replica_ranks}, {"shard", sizes.shard_ranks}}).value()};
  const Placement placement = {Shard{.dim = 0, .axis = "shard"}, Replicate{"replica"}};
  const auto add = [&](const Weight& weight) {
    for (const char* prefix : {"model.", "optimizer.exp_avg.", "optimizer.exp_avg_sq."}) {
      scenario.everywhere.push_back({SpecOf(prefix, weight, DType::kF32, placement), placement});
    }
  };
  add({"embed_tokens.weight", {sizes.vocabulary, sizes.hidden}});
  for (std::uint64_t layer = 0; layer < sizes.layers; ++layer) {
    for (const Weight& weight : LlamaBlock(layer, sizes)) add(weight);
  }
  add({"norm.weight", {sizes.hidden}});
  add({"lm_head.weight", {sizes.vocabulary, sizes.hidden}});
  return scenario;
}

Scenario ExpertScenario(const ExpertSizes& sizes) {
  Scenario scenario{.name = "experts",
                    .title = StrCat("experts ", sizes.expert_ranks, " x TP ", sizes.tensor_ranks,
                                    " x DP ", sizes.data_ranks),
                    .mesh = Mesh::Create({{"data", sizes.data_ranks},
                                          {"expert", sizes.expert_ranks},
                                          {"tensor", sizes.tensor_ranks}})
                                .value(),
                    .place_axis = "expert"};
  scenario.by_place.resize(sizes.expert_ranks);
  for (const char* state : kStates) {
    static_cast<void>(state);
    scenario.buckets.push_back({.members = {}, .flat_axes = {"data", "expert"}});
  }
  const auto add_dense = [&](const Weight& weight) {
    const Placement placement = {TensorRule(weight, "tensor"), Replicate{"data"},
                                 Replicate{"expert"}};
    scenario.everywhere.push_back({SpecOf("model.", weight, DType::kBf16, placement), placement});
    for (std::size_t i = 0; i < scenario.buckets.size(); ++i) {
      scenario.buckets[i].members.push_back(
          {SpecOf(kStates[i], weight, DType::kF32, placement), placement});
    }
  };
  const auto add_expert = [&](std::uint64_t expert, const Weight& weight) {
    std::vector<ScenarioTensor>& tensors =
        scenario.by_place[expert * sizes.expert_ranks / sizes.experts];
    const PlacementRule cut = TensorRule(weight, "tensor");
    const Placement model = {LocalOnly{"expert"}, cut, Replicate{"data"}};
    tensors.push_back({SpecOf("model.", weight, DType::kBf16, model), model});
    const Placement flat = {LocalOnly{"expert"}, cut, ShardFlat{.axes = {"data"}}};
    for (const char* state : kStates) {
      tensors.push_back({SpecOf(state, weight, DType::kF32, flat), flat});
    }
  };
  const std::uint64_t h = sizes.hidden;
  add_dense({"embed_tokens.weight", {sizes.vocabulary, h}, 0});
  for (std::uint64_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string at = StrCat("layers.", layer, ".");
    add_dense({at + "input_layernorm.weight", {h}});
    add_dense({at + "self_attn.qkv_proj.weight", {3 * h, h}, 0});
    add_dense({at + "self_attn.o_proj.weight", {h, h}, 1});
    add_dense({at + "post_attention_layernorm.weight", {h}});
    add_dense({at + "mlp.router.weight", {sizes.experts, h}});
    for (std::uint64_t expert = 0; expert < sizes.experts; ++expert) {
      const std::string in = StrCat(at, "mlp.experts.", expert, ".");
      add_expert(expert, {in + "gate_proj.weight", {sizes.inner, h}, 0});
      add_expert(expert, {in + "up_proj.weight", {sizes.inner, h}, 0});
      add_expert(expert, {in + "down_proj.weight", {h, sizes.inner}, 1});
    }
  }
  add_dense({"norm.weight", {h}});
  add_dense({"lm_head.weight", {sizes.vocabulary, h}, 0});
  return scenario;
}

}  // namespace sealpoint::testing
