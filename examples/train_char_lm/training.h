// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/placement.h"
#include "sealpoint/region.h"

namespace char_lm {

inline constexpr std::size_t kContext = 8;  // bytes seen before the one to predict

// A tensor of the state as a rank holds it.
struct LocalTensor {
  std::string name;
  sealpoint::Shape shape;  // of the whole
  sealpoint::Placement placement;
  sealpoint::LocalLayout layout;
  std::span<float> memory;
};

// What a rank holds of the parameters, or of something of their shapes, is in one piece of memory:
// a dense local tensor of each, one after the other. Here the elements of the flat vector of all
// parameters that lie there; padding is none of them.
using Part = std::vector<std::size_t>;

// Trains on all ranks of a mesh with the axes "data" and "tensor". Weights are cut along "tensor"
// and are the same along "data". Adam's moments of what that leaves of each weight are one flat
// vector, cut along "data": a rank updates its range alone (ZeRO-1, and the distributed optimizer
// of Megatron-LM).
//
// Losses and state have the same bits on every mesh. For this each rank assembles all parameters
// before it computes, so that no sum is divided, and a step is always twelve micro-batches:
// the rank that updates an element adds their gradients in the order of their numbers.
class Training {
 public:
  // Borrows text and communicator. The text is longer than kContext.
  Training(std::uint64_t seed, std::size_t hidden, std::span<const std::uint8_t> text,
           const sealpoint::Mesh& mesh, sealpoint::Communicator& comm);

  // Collective. Returns the mean loss per byte of text before the update, in nats.
  float Step();

  // What is saved and loaded: the steps done, and these tensors, in place. What must be the same in
  // a training that goes on is in arguments(), as JSON.
  std::uint64_t step() const { return step_; }
  std::vector<LocalTensor> tensors();
  std::string arguments() const;
  // Collective: after the tensors were filled.
  void ContinueFrom(std::uint64_t step);

  // Collective: a digest of all parameters and moments, the same on any mesh. To compare trainings
  // with; one of real size would not gather them.
  std::string StateDigest() const;

  const sealpoint::Mesh& mesh() const { return mesh_; }
  std::size_t parameter_count() const { return values_.size(); }

 private:
  void Gather(const std::vector<Part>& parts, std::span<const float> own,
              std::span<float> flat) const;

  const std::uint64_t seed_;
  const std::size_t hidden_;  // width of the model
  const std::span<const std::uint8_t> text_;
  const sealpoint::Mesh mesh_;
  sealpoint::Communicator& comm_;
  const std::size_t rank_ = static_cast<std::size_t>(comm_.rank());
  std::uint64_t step_ = 0;
  std::vector<Part> weight_parts_, moment_parts_;      // of every rank
  std::vector<float> weights_, exp_avg_, exp_avg_sq_;  // the parts of this one
  std::vector<float> values_;                          // of all parameters, to compute with
};

}  // namespace char_lm
