// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "parameters.h"
#include "sealpoint/mesh.h"
#include "sealpoint/placement.h"

namespace char_lm {

// How one kind of state (the weights, or a moment) lies on the ranks of a mesh. What a rank has of
// the tensors, one local tensor behind the other, is its packed part.
class Layouts {
 public:
  // The rule for each tensor; it must fit the mesh.
  using PlacementOf = std::function<sealpoint::Placement(const ParameterTensor&)>;
  Layouts(const std::vector<ParameterTensor>& tensors, const sealpoint::Mesh& mesh,
          const PlacementOf& placement_of);

  // The packed part of each rank: number of floats, with the padding of flat shards.
  [[nodiscard]] std::span<const std::size_t> packed_sizes() const { return packed_sizes_; }
  [[nodiscard]] const sealpoint::Placement& placement(std::size_t tensor) const {
    return placements_[tensor];
  }
  [[nodiscard]] const sealpoint::LocalLayout& layout(std::size_t rank, std::size_t tensor) const {
    return layouts_[rank][tensor];
  }
  // Where a tensor begins in the packed part of a rank.
  [[nodiscard]] std::size_t packed_begin(std::size_t rank, std::size_t tensor) const {
    return packed_begins_[rank][tensor];
  }

  // Copies the packed part of `rank` out of, or into, a flat vector of all tensors. Padding is left
  // as it is.
  void Pack(std::size_t rank, std::span<const float> flat, std::span<float> packed) const;
  void Unpack(std::size_t rank, std::span<const float> packed, std::span<float> flat) const;

 private:
  template <typename Copy>
  void ForEachRow(std::size_t rank, const Copy& copy) const;

  const std::vector<ParameterTensor>& tensors_;
  std::vector<sealpoint::Placement> placements_;
  std::vector<std::vector<sealpoint::LocalLayout>> layouts_;  // by rank, then by tensor
  std::vector<std::vector<std::size_t>> packed_begins_;       // likewise
  std::vector<std::size_t> packed_sizes_;
};

}  // namespace char_lm
