// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "exchange.h"
#include "layouts.h"
#include "parameters.h"
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

// What this rank has of one global f32 tensor, at `data` in the form that the layout says.
struct LocalTensor {
  std::string name;
  sealpoint::Shape shape;
  sealpoint::Placement placement;
  sealpoint::LocalLayout layout;
  float* data;
};

// Parameters and both Adam moments of all tensors on a mesh with the axes "data" and "tensor".
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

  // What each rank updates, and has the moments of.
  [[nodiscard]] const Layouts& shards() const { return shards_; }
  [[nodiscard]] std::size_t shard_size() const { return exp_avg_.size(); }

  // Parameters, then first, then second moments; the order is the same on all ranks. The pointers
  // stay valid as long as this object. Who loads a checkpoint writes through them.
  [[nodiscard]] std::vector<LocalTensor> Tensors();

  // The parameters of this rank's shard, packed.
  void CopyShard(std::span<float> shard) const { shards_.Pack(rank_, parameters_, shard); }
  // Collective: all ranks give their shards, after an update.
  void AssembleFromShards(GradientExchange& exchange, std::span<const float> shard);
  // Collective: to be called when the tensors of all ranks were filled.
  void AssembleFromWeights(GradientExchange& exchange);
  // Collective: whole parameters, then whole first and second moments, whatever the mesh is; from
  // the memory that Tensors() tells of.
  [[nodiscard]] std::vector<float> Whole(GradientExchange& exchange) const;

  // All of them, in full.
  [[nodiscard]] std::span<float> parameters() { return parameters_; }
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }
  // Keeps what of the full parameters is this rank's, to be saved.
  void KeepWeights() { weights_.Pack(rank_, parameters_, local_weights_); }

  [[nodiscard]] std::span<float> exp_avg() { return exp_avg_; }
  [[nodiscard]] std::span<float> exp_avg_sq() { return exp_avg_sq_; }

 private:
  // Collective: the flat vector of which each rank has a packed part.
  void Gather(GradientExchange& exchange, const Layouts& layouts, std::span<const float> mine,
              std::span<float> flat) const;

  const std::vector<ParameterTensor>& tensors_;
  const std::size_t rank_;
  const Layouts weights_;
  const Layouts shards_;
  std::vector<float> parameters_;     // flat, all of them
  std::vector<float> local_weights_;  // packed as weights_
  std::vector<float> exp_avg_;        // packed as shards_
  std::vector<float> exp_avg_sq_;
};

}  // namespace char_lm
