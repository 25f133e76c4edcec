// SPDX-License-Identifier: Apache-2.0
#include "model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace char_lm {
Model::Model(const ModelConfig& config)
    : config_(config),
      dense0_(config.dense0()),
      dense1_(config.dense1()),
      dense2_(config.dense2()),
      input_(dense0_.inputs * kLanes),
      hidden0_(dense0_.outputs * kLanes),
      hidden1_(dense1_.outputs * kLanes),
      output_(dense2_.outputs * kLanes),
      dinput_(input_.size()),
      dhidden0_(hidden0_.size()),
      dhidden1_(hidden1_.size()),
      doutput_(output_.size()),
      probability_error_(output_.size()) {
  // Rows of the vocabulary, outputs of one layer, inputs of the next: the pairs of Megatron-LM.
  AddTensor("model.embedding.weight", {config.vocabulary, config.embedding}, 0);
  AddTensor("model.hidden0.weight", {dense0_.outputs, dense0_.inputs}, 0);
  AddTensor("model.hidden0.bias", {dense0_.outputs});
  AddTensor("model.hidden1.weight", {dense1_.outputs, dense1_.inputs}, 1);
  AddTensor("model.hidden1.bias", {dense1_.outputs});
  AddTensor("model.output.weight", {dense2_.outputs, dense2_.inputs}, 0);
  AddTensor("model.output.bias", {dense2_.outputs});
  AddTensor("model.output.scale", {1});
}

void Model::AddTensor(std::string name, sealpoint::Shape shape,
                      std::optional<int> tensor_parallel_dim) {
  ParameterTensor tensor{.name = std::move(name),
                         .shape = std::move(shape),
                         .begin = parameter_count_,
                         .tensor_parallel_dim = tensor_parallel_dim};
  parameter_count_ += tensor.elements();
  tensors_.push_back(std::move(tensor));
}

void Model::Initialize(CounterRng& rng, std::span<float> parameters) const {
  std::fill(parameters.begin(), parameters.end(), 0.0F);
  for (const ParameterIndex which : {kEmbedding, kWeight0, kWeight1, kWeight2}) {
    const std::span<float> values = tensors_[which].In(parameters);
    const float fan_in =
        which == kEmbedding ? 1.0F : static_cast<float>(tensors_[which].row_elements());
    const float bound = std::sqrt(1.0F / fan_in);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = bound * rng.PeekSymmetric(i);
    }
    rng.Advance(values.size());
  }
  tensors_[kScale].In(parameters)[0] = 1.0F;
}

float Model::Loss(const MicroBatch& batch, std::span<const float> parameters) {
  Forward(batch, parameters);
  return Softmax(batch, tensors_[kScale].In(parameters)[0]);
}

float Model::LossAndGradient(const MicroBatch& batch, std::span<const float> parameters,
                             std::span<float> gradient) {
  const float loss = Loss(batch, parameters);
  Backward(batch, parameters, gradient);
  return loss;
}

void Model::Forward(const MicroBatch& batch, std::span<const float> parameters) {
  const auto part = [&](ParameterIndex which) { return tensors_[which].In(parameters); };
  const std::span<const float> embedding = part(kEmbedding);
  for (std::size_t s = 0; s < kLanes; ++s) {
    for (std::size_t c = 0; c < config_.context; ++c) {
      const std::size_t token = batch.context[s * config_.context + c];
      for (std::size_t e = 0; e < config_.embedding; ++e) {
        input_[(c * config_.embedding + e) * kLanes + s] = embedding[token * config_.embedding + e];
      }
    }
  }
  DenseForward(dense0_, part(kWeight0), part(kBias0), input_, hidden0_);
  TanhForward(hidden0_);
  DenseForward(dense1_, part(kWeight1), part(kBias1), hidden0_, hidden1_);
  TanhForward(hidden1_);
  DenseForward(dense2_, part(kWeight2), part(kBias2), hidden1_, output_);
}

float Model::Softmax(const MicroBatch& batch, float scale) {
  const std::size_t count = config_.vocabulary;
  float loss = 0.0F;
  for (std::size_t s = 0; s < kLanes; ++s) {
    float largest = scale * output_[s];
    for (std::size_t v = 1; v < count; ++v) {
      largest = std::max(largest, scale * output_[v * kLanes + s]);
    }
    float sum = 0.0F;
    for (std::size_t v = 0; v < count; ++v) {
      const float weight = std::exp(scale * output_[v * kLanes + s] - largest);
      probability_error_[v * kLanes + s] = weight;
      sum += weight;
    }
    for (std::size_t v = 0; v < count; ++v) {
      probability_error_[v * kLanes + s] /= sum;
    }
    const std::size_t at_target = batch.target[s] * kLanes + s;
    loss += std::log(sum) + largest - scale * output_[at_target];
    probability_error_[at_target] -= 1.0F;
  }
  return loss;
}

void Model::Backward(const MicroBatch& batch, std::span<const float> parameters,
                     std::span<float> gradient) {
  const auto part = [&](ParameterIndex which) { return tensors_[which].In(parameters); };
  const auto slope = [&](ParameterIndex which) { return tensors_[which].In(gradient); };
  const float scale = part(kScale)[0];
  float dscale = 0.0F;
  for (std::size_t i = 0; i < output_.size(); ++i) {
    dscale += probability_error_[i] * output_[i];
    doutput_[i] = scale * probability_error_[i];
  }
  slope(kScale)[0] = dscale;
  DenseParameterGradient(dense2_, hidden1_, doutput_, slope(kWeight2), slope(kBias2));
  DenseInputGradient(dense2_, part(kWeight2), doutput_, dhidden1_);
  TanhBackward(hidden1_, dhidden1_);
  DenseParameterGradient(dense1_, hidden0_, dhidden1_, slope(kWeight1), slope(kBias1));
  DenseInputGradient(dense1_, part(kWeight1), dhidden1_, dhidden0_);
  TanhBackward(hidden0_, dhidden0_);
  DenseParameterGradient(dense0_, input_, dhidden0_, slope(kWeight0), slope(kBias0));
  DenseInputGradient(dense0_, part(kWeight0), dhidden0_, dinput_);
  BackwardEmbedding(batch, slope(kEmbedding));
}

void Model::BackwardEmbedding(const MicroBatch& batch, std::span<float> gradient) {
  std::fill(gradient.begin(), gradient.end(), 0.0F);
  for (std::size_t s = 0; s < kLanes; ++s) {
    for (std::size_t c = 0; c < config_.context; ++c) {
      const std::size_t token = batch.context[s * config_.context + c];
      for (std::size_t e = 0; e < config_.embedding; ++e) {
        gradient[token * config_.embedding + e] +=
            dinput_[(c * config_.embedding + e) * kLanes + s];
      }
    }
  }
}

}  // namespace char_lm
