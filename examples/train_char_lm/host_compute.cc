// SPDX-License-Identifier: Apache-2.0
#include "host_compute.h"

#include <algorithm>
#include <vector>

namespace char_lm {
namespace {

class HostCompute final : public Compute {
 public:
  HostCompute(Model& model, const ShardedState& state, const AdamConfig& adam)
      : model_(model),
        state_(state),
        adam_(adam),
        parameters_(model.parameter_count()),
        gradient_(model.parameter_count()),
        weights_(state.weights_size()),
        exp_avg_(state.shard_size()),
        exp_avg_sq_(state.shard_size()),
        shard_(state.shard_size()),
        gradient_sum_(state.shard_size()) {}

  StateMemory memory() override {
    return {.weights = weights_, .exp_avg = exp_avg_, .exp_avg_sq = exp_avg_sq_};
  }
  std::span<const float> OnHost(std::span<const float> array) override { return array; }

  std::span<float> parameters() override { return parameters_; }
  void UseParameters() override { state_.weights().Pack(state_.rank(), parameters_, weights_); }

  Gradient LossAndGradient(const MicroBatch& batch) override {
    const float loss = model_.LossAndGradient(batch, parameters_, gradient_);
    return {.loss = loss, .values = gradient_};
  }
  std::span<const float> Update(std::uint64_t step, std::span<const float> received) override;

 private:
  Model& model_;
  const ShardedState& state_;
  const AdamConfig adam_;
  std::vector<float> parameters_;            // flat, all of them
  std::vector<float> gradient_;              // likewise, of one micro-batch
  std::vector<float> weights_;               // what of the parameters is this rank's, packed
  std::vector<float> exp_avg_, exp_avg_sq_;  // of this rank's shard, packed
  std::vector<float> shard_, gradient_sum_;  // likewise; kept over steps only as memory
};

std::span<const float> HostCompute::Update(std::uint64_t step, std::span<const float> received) {
  const std::size_t size = gradient_sum_.size();
  std::copy_n(received.begin(), size, gradient_sum_.begin());
  for (std::size_t m = 1; m < kMicroBatches; ++m) {
    const float* part = received.data() + m * size;
    for (std::size_t i = 0; i < size; ++i) {
      gradient_sum_[i] += part[i];
    }
  }
  const float scale = 1.0F / static_cast<float>(kMicroBatches * kLanes);
  for (float& value : gradient_sum_) {
    value *= scale;
  }
  state_.shards().Pack(state_.rank(), parameters_, shard_);
  AdamUpdate(adam_, step, gradient_sum_, shard_, exp_avg_, exp_avg_sq_);
  return shard_;
}

}  // namespace

MakeCompute OnHost() {
  return [](Model& model, const ShardedState& state, const AdamConfig& adam) {
    return std::make_unique<HostCompute>(model, state, adam);
  };
}

}  // namespace char_lm
