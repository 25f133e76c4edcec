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

}  // namespace

ShardedState::ShardedState(const std::vector<ParameterTensor>& tensors, const sealpoint::Mesh& mesh,
                           std::size_t rank)
    : tensors_(tensors),
      rank_(rank),
      weights_(tensors, mesh, PlaceWeight),
      shards_(tensors, mesh, PlaceMoment) {}

std::vector<LocalTensor> ShardedState::Tensors(const StateMemory& memory) const {
  std::vector<LocalTensor> all;
  const auto add = [&](const std::string& prefix, const Layouts& layouts, std::span<float> packed) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      all.push_back({.name = prefix + tensors_[i].name,
                     .shape = tensors_[i].shape,
                     .placement = layouts.placement(i),
                     .layout = layouts.layout(rank_, i),
                     .data = packed.data() + layouts.packed_begin(rank_, i),
                     .device = memory.device,
                     .stream = memory.stream});
    }
  };
  add("", weights_, memory.weights);
  add("optimizer.exp_avg.", shards_, memory.exp_avg);
  add("optimizer.exp_avg_sq.", shards_, memory.exp_avg_sq);
  return all;
}

void ShardedState::Gather(GradientExchange& exchange, const Layouts& layouts,
                          std::span<const float> mine, std::span<float> flat) {
  const auto sizes = layouts.packed_sizes();
  std::vector<float> packed(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
  exchange.AllGather(mine, packed, sizes);
  std::span<const float> rest(packed);
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    layouts.Unpack(rank, rest.first(sizes[rank]), flat);
    rest = rest.subspan(sizes[rank]);
  }
}

}  // namespace char_lm
