// SPDX-License-Identifier: Apache-2.0
#include "sharded_state.h"

#include <numeric>
#include <utility>

namespace char_lm {
namespace {

using sealpoint::Placement;

// What tensor parallelism does to a weight.
sealpoint::PlacementRule OnTensorAxis(const ParameterTensor& tensor) {
  if (!tensor.tensor_parallel_dim) {
    return sealpoint::Replicate{"tensor"};
  }
  return sealpoint::Shard{
      .dim = *tensor.tensor_parallel_dim, .axis = "tensor", .rule = sealpoint::SplitRule::kEven};
}

Placement PlaceWeight(const ParameterTensor& tensor) {
  return {OnTensorAxis(tensor), sealpoint::Replicate{"data"}};
}

Placement PlaceMoment(const ParameterTensor& tensor) {
  return {OnTensorAxis(tensor), sealpoint::ShardFlat{.axes = {"data"}}};
}

std::size_t CountElements(const std::vector<ParameterTensor>& tensors) {
  return tensors.empty() ? 0 : tensors.back().begin + tensors.back().elements();
}

}  // namespace

ShardedState::ShardedState(const std::vector<ParameterTensor>& tensors, const sealpoint::Mesh& mesh,
                           std::size_t rank)
    : tensors_(tensors),
      rank_(rank),
      weights_(tensors, mesh, PlaceWeight),
      shards_(tensors, mesh, PlaceMoment),
      parameters_(CountElements(tensors)),
      local_weights_(weights_.packed_sizes()[rank]),
      exp_avg_(shards_.packed_sizes()[rank]),
      exp_avg_sq_(exp_avg_.size()) {}

std::vector<LocalTensor> ShardedState::Tensors() {
  std::vector<LocalTensor> all;
  const auto add = [&](const std::string& prefix, const Layouts& layouts, float* packed) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      all.push_back({.name = prefix + tensors_[i].name,
                     .shape = tensors_[i].shape,
                     .placement = layouts.placement(i),
                     .layout = layouts.layout(rank_, i),
                     .data = packed + layouts.packed_begin(rank_, i)});
    }
  };
  add("", weights_, local_weights_.data());
  add("optimizer.exp_avg.", shards_, exp_avg_.data());
  add("optimizer.exp_avg_sq.", shards_, exp_avg_sq_.data());
  return all;
}

void ShardedState::Gather(GradientExchange& exchange, const Layouts& layouts,
                          std::span<const float> mine, std::span<float> flat) const {
  const auto sizes = layouts.packed_sizes();
  std::vector<float> packed(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
  exchange.AllGather(mine, packed, sizes);
  std::span<const float> rest(packed);
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    layouts.Unpack(rank, rest.first(sizes[rank]), flat);
    rest = rest.subspan(sizes[rank]);
  }
}

void ShardedState::AssembleFromShards(GradientExchange& exchange, std::span<const float> shard) {
  Gather(exchange, shards_, shard, parameters_);
  KeepWeights();
}

void ShardedState::AssembleFromWeights(GradientExchange& exchange) {
  Gather(exchange, weights_, local_weights_, parameters_);
}

std::vector<float> ShardedState::Whole(GradientExchange& exchange) const {
  std::vector<float> whole(3 * parameters_.size());
  std::span<float> rest(whole);
  const auto gather = [&](const Layouts& layouts, std::span<const float> mine) {
    Gather(exchange, layouts, mine, rest.first(parameters_.size()));
    rest = rest.subspan(parameters_.size());
  };
  gather(weights_, local_weights_);
  gather(shards_, exp_avg_);
  gather(shards_, exp_avg_sq_);
  return whole;
}

}  // namespace char_lm
