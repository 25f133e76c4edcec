// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "adam.h"
#include "model.h"
#include "sharded_state.h"

namespace char_lm {

// Of one step, on all ranks together.
inline constexpr std::size_t kMicroBatches = 12;

// The arithmetic of one rank, and the memory that it works on: of the host, or of a device. Ranks
// exchange gradients and parameters through host memory. The spans that are returned lie there;
// what they hold stays until the same function is called again.
class Compute {
 public:
  struct Gradient {
    float loss;                     // summed over the samples, in nats
    std::span<const float> values;  // of that sum: flat, of all parameters
  };

  Compute() = default;
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;
  virtual ~Compute() = default;

  // What a checkpoint saves and loads in place. The addresses stay valid as long as this object.
  [[nodiscard]] virtual StateMemory memory() = 0;
  // What an array of memory() holds.
  [[nodiscard]] virtual std::span<const float> OnHost(std::span<const float> array) = 0;

  // All parameters, flat, on the host. Whoever writes there calls UseParameters then, which also
  // keeps what of them is this rank's to be saved.
  [[nodiscard]] virtual std::span<float> parameters() = 0;
  virtual void UseParameters() = 0;

  virtual Gradient LossAndGradient(const MicroBatch& batch) = 0;

  // One update of this rank's shard, packed, whose parameters are returned: `received` holds its
  // gradient of each micro-batch, [kMicroBatches][shard], to be added in this order. Steps count
  // from 1.
  virtual std::span<const float> Update(std::uint64_t step, std::span<const float> received) = 0;
};

// Makes it for one rank; borrows the model and the state.
using MakeCompute =
    std::function<std::unique_ptr<Compute>(Model&, const ShardedState&, const AdamConfig&)>;

}  // namespace char_lm
