// SPDX-License-Identifier: Apache-2.0
#include "cuda_compute.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda_device.h"

namespace char_lm {
namespace {

using Floats = DeviceArray<float>;

// The output of a layer and its gradient, [feature][sample].
struct Activation {
  Activation(const CudaDevice& device, std::size_t features)
      : value(device, features * kLanes), gradient(device, features * kLanes) {}
  Floats value;
  Floats gradient;
};

class CudaCompute final : public Compute {
 public:
  CudaCompute(std::shared_ptr<const CudaDevice> device, const Model& model,
              const ShardedState& state, const AdamConfig& adam);

  StateMemory memory() override;
  std::span<const float> OnHost(std::span<const float> array) override;
  std::span<float> parameters() override { return host_parameters_; }
  void UseParameters() override;
  Gradient LossAndGradient(const MicroBatch& batch) override;
  std::span<const float> Update(std::uint64_t step, std::span<const float> received) override;

 private:
  [[nodiscard]] float* At(const Floats& flat, ParameterIndex which) const {
    return flat.data() + model_.tensors()[which].begin;
  }
  void Forward() const;
  void Backward() const;
  void DenseBackward(DenseShape shape, ParameterIndex weight, ParameterIndex bias,
                     const Activation& x, const Activation& y) const;

  const std::shared_ptr<const CudaDevice> device_;
  const Model& model_;
  const ShardedState& state_;
  const AdamConfig adam_;
  const ModelConfig& config_;

  // In device memory: what is saved, packed; what is computed with.
  Floats weights_, exp_avg_, exp_avg_sq_;
  Floats parameters_, gradient_;  // flat, all of them
  Floats shard_, received_;       // the parameters of this rank's shard; its gradients
  DeviceArray<std::uint8_t> context_, target_;
  Activation input_, hidden0_, hidden1_, output_;
  Floats probability_error_, losses_;

  // In host memory: what goes to other ranks, or comes from them.
  std::vector<float> host_parameters_, host_gradient_, host_weights_, host_shard_, host_state_;
};

CudaCompute::CudaCompute(std::shared_ptr<const CudaDevice> device, const Model& model,
                         const ShardedState& state, const AdamConfig& adam)
    : device_(std::move(device)),
      model_(model),
      state_(state),
      adam_(adam),
      config_(model.config()),
      weights_(*device_, state.weights_size()),
      exp_avg_(*device_, state.shard_size()),
      exp_avg_sq_(*device_, state.shard_size()),
      parameters_(*device_, model.parameter_count()),
      gradient_(*device_, model.parameter_count()),
      shard_(*device_, state.shard_size()),
      received_(*device_, kMicroBatches * state.shard_size()),
      context_(*device_, kLanes * config_.context),
      target_(*device_, kLanes),
      input_(*device_, config_.dense0().inputs),
      hidden0_(*device_, config_.dense0().outputs),
      hidden1_(*device_, config_.dense1().outputs),
      output_(*device_, config_.dense2().outputs),
      probability_error_(*device_, output_.value.size()),
      losses_(*device_, kLanes),
      host_parameters_(parameters_.size()),
      host_gradient_(gradient_.size()),
      host_weights_(weights_.size()),
      host_shard_(shard_.size()) {
  exp_avg_.CopyFrom(host_shard_);  // zeros
  exp_avg_sq_.CopyFrom(host_shard_);
  device_->Synchronize();
}

StateMemory CudaCompute::memory() {
  return {.weights = weights_.span(),
          .exp_avg = exp_avg_.span(),
          .exp_avg_sq = exp_avg_sq_.span(),
          .device = device_->number(),
          .stream = device_->stream()};
}

std::span<const float> CudaCompute::OnHost(std::span<const float> array) {
  host_state_.resize(array.size());
  device_->CopyToHost(static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(array.data())),
                      std::as_writable_bytes(std::span(host_state_)));
  device_->Synchronize();
  return host_state_;
}

void CudaCompute::UseParameters() {
  state_.weights().Pack(state_.rank(), host_parameters_, host_weights_);
  state_.shards().Pack(state_.rank(), host_parameters_, host_shard_);
  parameters_.CopyFrom(host_parameters_);
  weights_.CopyFrom(host_weights_);
  shard_.CopyFrom(host_shard_);
  device_->Synchronize();
}

Compute::Gradient CudaCompute::LossAndGradient(const MicroBatch& batch) {
  std::array<float, kLanes> losses{};
  context_.CopyFrom(batch.context);
  target_.CopyFrom(batch.target);
  Forward();
  Backward();
  losses_.CopyTo(losses);
  gradient_.CopyTo(host_gradient_);
  device_->Synchronize();
  float loss = 0.0F;
  for (const float part : losses) {
    loss += part;
  }
  return {.loss = loss, .values = host_gradient_};
}

void CudaCompute::Forward() const {
  const auto dense = [&](DenseShape shape, ParameterIndex weight, ParameterIndex bias,
                         const Activation& x, const Activation& y) {
    device_->Launch(jobs::DenseForward{.inputs = shape.inputs,
                                       .outputs = shape.outputs,
                                       .weight = At(parameters_, weight),
                                       .bias = At(parameters_, bias),
                                       .x = x.value.data(),
                                       .y = y.value.data()});
  };
  const auto tanh = [&](const Activation& x) {
    device_->Launch(jobs::Tanh{.count = x.value.size(), .x = x.value.data()});
  };
  device_->Launch(jobs::Embed{.context = config_.context,
                              .width = config_.embedding,
                              .tokens = context_.data(),
                              .embedding = At(parameters_, kEmbedding),
                              .input = input_.value.data()});
  dense(config_.dense0(), kWeight0, kBias0, input_, hidden0_);
  tanh(hidden0_);
  dense(config_.dense1(), kWeight1, kBias1, hidden0_, hidden1_);
  tanh(hidden1_);
  dense(config_.dense2(), kWeight2, kBias2, hidden1_, output_);
  device_->Launch(jobs::Softmax{.vocabulary = config_.vocabulary,
                                .target = target_.data(),
                                .scale = At(parameters_, kScale),
                                .output = output_.value.data(),
                                .probability_error = probability_error_.data(),
                                .losses = losses_.data()});
}

void CudaCompute::Backward() const {
  const auto tanh = [&](const Activation& x) {
    device_->Launch(
        jobs::TanhGradient{.count = x.value.size(), .x = x.value.data(), .dx = x.gradient.data()});
  };
  device_->Launch(jobs::ScaleGradient{.count = output_.value.size(),
                                      .probability_error = probability_error_.data(),
                                      .output = output_.value.data(),
                                      .dscale = At(gradient_, kScale)});
  device_->Launch(jobs::LogitGradient{.count = output_.value.size(),
                                      .scale = At(parameters_, kScale),
                                      .probability_error = probability_error_.data(),
                                      .doutput = output_.gradient.data()});
  DenseBackward(config_.dense2(), kWeight2, kBias2, hidden1_, output_);
  tanh(hidden1_);
  DenseBackward(config_.dense1(), kWeight1, kBias1, hidden0_, hidden1_);
  tanh(hidden0_);
  DenseBackward(config_.dense0(), kWeight0, kBias0, input_, hidden0_);
  device_->Launch(jobs::EmbeddingGradient{.vocabulary = config_.vocabulary,
                                          .context = config_.context,
                                          .width = config_.embedding,
                                          .tokens = context_.data(),
                                          .dinput = input_.gradient.data(),
                                          .dembedding = At(gradient_, kEmbedding)});
}

// From the gradient of y to those of weight, bias and x.
void CudaCompute::DenseBackward(DenseShape shape, ParameterIndex weight, ParameterIndex bias,
                                const Activation& x, const Activation& y) const {
  device_->Launch(jobs::WeightGradient{.inputs = shape.inputs,
                                       .outputs = shape.outputs,
                                       .x = x.value.data(),
                                       .dy = y.gradient.data(),
                                       .dweight = At(gradient_, weight)});
  device_->Launch(jobs::BiasGradient{
      .outputs = shape.outputs, .dy = y.gradient.data(), .dbias = At(gradient_, bias)});
  device_->Launch(jobs::InputGradient{.inputs = shape.inputs,
                                      .outputs = shape.outputs,
                                      .weight = At(parameters_, weight),
                                      .dy = y.gradient.data(),
                                      .dx = x.gradient.data()});
}

std::span<const float> CudaCompute::Update(std::uint64_t step, std::span<const float> received) {
  const auto [rate, correction2] = RatesAt(adam_, step);
  received_.CopyFrom(received);
  device_->Launch(jobs::AdamUpdate{.count = shard_.size(),
                                   .micro_batches = kMicroBatches,
                                   .gradients = received_.data(),
                                   .beta1 = adam_.beta1,
                                   .beta2 = adam_.beta2,
                                   .epsilon = adam_.epsilon,
                                   .rate = rate,
                                   .correction2 = correction2,
                                   .parameters = shard_.data(),
                                   .exp_avg = exp_avg_.data(),
                                   .exp_avg_sq = exp_avg_sq_.data()});
  shard_.CopyTo(host_shard_);
  device_->Synchronize();
  return host_shard_;
}

}  // namespace

bool HasCuda() { return true; }

sealpoint::Result<MakeCompute> OnCuda(std::size_t rank) {
  auto opened = CudaDevice::Open(rank);
  if (!opened.ok()) {
    return opened.error();
  }
  const std::shared_ptr<const CudaDevice> device = std::move(*opened);
  return MakeCompute([device](Model& model, const ShardedState& state, const AdamConfig& adam) {
    return std::make_unique<CudaCompute>(device, model, state, adam);
  });
}

}  // namespace char_lm
