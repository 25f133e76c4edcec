// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "exchange.h"
#include "layouts.h"
#include "parameters.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/mesh.h"
#include "sealpoint/placement.h"
#include "sealpoint/region.h"

namespace char_lm {

struct Range {
  std::size_t begin;
  std::size_t end;
  [[nodiscard]] std::size_t size() const { return end - begin; }
};

// Part `part` of `total` things divided evenly over `parts`; empty for some if there are fewer
// things.
inline Range EvenPart(std::size_t total, std::size_t part, std::size_t parts) {
  return {.begin = total * part / parts, .end = total * (part + 1) / parts};
}

// This rank's part of the state, packed as the layouts of ShardedState say: in memory of the host,
// or of a CUDA device, where only the device may read and write it.
struct StateMemory {
  std::span<float> weights;
  std::span<float> exp_avg;
  std::span<float> exp_avg_sq;
  int device = sealpoint::kHostDevice;
  void* stream = nullptr;  // that uses the memory of a device
};

// What this rank has of one global f32 tensor, at `data` in the form that the layout says.
struct LocalTensor {
  std::string name;
  sealpoint::Shape shape;
  sealpoint::Placement placement;
  sealpoint::LocalLayout layout;
  float* data;
  int device;  // both as in StateMemory
  void* stream;
};

// How parameters and both Adam moments of all tensors lie on a mesh with the axes "data" and
// "tensor".
//
// Weights are cut over "tensor" where the model says so and are the same along "data". The moments
// of what a rank has of a weight are one flat vector, cut over "data": each rank updates its shard
// alone and keeps moments for no more (ZeRO-1, the distributed optimizer of Megatron-LM).
//
// To compute with, every rank assembles all parameters. A model as small as this can afford it, and
// no sum is divided over the "tensor" ranks then, so that its terms are added in the same order on
// every mesh.
class ShardedState {
 public:
  // The rank is one of the mesh.
  ShardedState(const std::vector<ParameterTensor>& tensors, const sealpoint::Mesh& mesh,
               std::size_t rank);

  [[nodiscard]] std::size_t rank() const { return rank_; }
  // What each rank saves of the parameters.
  [[nodiscard]] const Layouts& weights() const { return weights_; }
  // What each rank updates, and has the moments of.
  [[nodiscard]] const Layouts& shards() const { return shards_; }
  // Of this rank's part, in floats.
  [[nodiscard]] std::size_t weights_size() const { return weights_.packed_sizes()[rank_]; }
  [[nodiscard]] std::size_t shard_size() const { return shards_.packed_sizes()[rank_]; }

  // Parameters, then first, then second moments; the order is the same on all ranks. Who loads a
  // checkpoint writes through them.
  [[nodiscard]] std::vector<LocalTensor> Tensors(const StateMemory& memory) const;

  // Collective, in host memory: the flat vector of which each rank gives its packed part.
  void GatherWeights(GradientExchange& exchange, std::span<const float> mine,
                     std::span<float> flat) const {
    Gather(exchange, weights_, mine, flat);
  }
  void GatherShards(GradientExchange& exchange, std::span<const float> mine,
                    std::span<float> flat) const {
    Gather(exchange, shards_, mine, flat);
  }

 private:
  static void Gather(GradientExchange& exchange, const Layouts& layouts,
                     std::span<const float> mine, std::span<float> flat);

  const std::vector<ParameterTensor>& tensors_;
  const std::size_t rank_;
  const Layouts weights_;
  const Layouts shards_;
};

}  // namespace char_lm
