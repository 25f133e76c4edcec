// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "exchange.h"
#include "parameters.h"

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

// What this rank holds of one global f32 tensor: the box [offset, offset + extent), contiguous and
// row-major at `data`. If the rank owns no row, extent[0] is 0 and `data` is not to be read.
struct ShardedTensor {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<std::uint64_t> offset;
  std::vector<std::uint64_t> extent;
  float* data;
};

// Parameters and both Adam moments of all tensors. Each rank owns an even range of rows of every
// tensor: it alone updates those rows and it alone keeps their moments, while every rank has a full
// copy of the parameters to compute with. A rank's rows of all tensors, one after another, are its
// packed part.
class ShardedState {
 public:
  ShardedState(std::vector<ParameterTensor> tensors, std::size_t rank, std::size_t size);

  // The packed part of each rank: number of floats.
  [[nodiscard]] std::span<const std::size_t> packed_sizes() const { return packed_sizes_; }
  [[nodiscard]] std::size_t owned_size() const { return packed_sizes_[rank_]; }

  // Copies the rows that `owner` owns out of, or into, a flat vector of all parameters.
  void Pack(std::size_t owner, std::span<const float> flat, std::span<float> packed) const;
  void Unpack(std::size_t owner, std::span<const float> packed, std::span<float> flat) const;

  // Parameters, then first, then second moments; the order is the same on all ranks. The pointers
  // stay valid as long as this object, and writing through them is how a checkpoint is loaded.
  [[nodiscard]] std::vector<ShardedTensor> Tensors();

  // Collective: makes the full copy equal to the owned rows of all ranks.
  void AssembleParameters(GradientExchange& exchange);

  [[nodiscard]] std::span<float> parameters() { return parameters_; }
  [[nodiscard]] std::span<const float> parameters() const { return parameters_; }
  [[nodiscard]] std::span<float> exp_avg() { return exp_avg_; }        // packed, owned rows only
  [[nodiscard]] std::span<float> exp_avg_sq() { return exp_avg_sq_; }  // packed, owned rows only

 private:
  std::vector<ParameterTensor> tensors_;
  std::size_t rank_;
  std::vector<std::size_t> packed_sizes_;
  std::vector<float> parameters_;  // all of them
  std::vector<float> exp_avg_;
  std::vector<float> exp_avg_sq_;
  std::vector<float> gathered_;  // scratch: the packed parts of all ranks
};

}  // namespace char_lm
