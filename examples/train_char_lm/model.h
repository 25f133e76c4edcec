// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels.h"
#include "parameters.h"
#include "random.h"

namespace char_lm {

struct ModelConfig {
  std::size_t vocabulary = 0;
  std::size_t context = 16;     // characters seen before the one to predict
  std::size_t embedding = 128;  // context * embedding must be a multiple of kLanes
  std::size_t hidden0 = 544;    // a multiple of kLanes
  std::size_t hidden1 = 256;    // a multiple of kLanes

  [[nodiscard]] DenseShape dense0() const {
    return {.inputs = context * embedding, .outputs = hidden0};
  }
  [[nodiscard]] DenseShape dense1() const { return {.inputs = hidden0, .outputs = hidden1}; }
  [[nodiscard]] DenseShape dense2() const { return {.inputs = hidden1, .outputs = vocabulary}; }
};

// Order of the tensors in the flat vector.
enum ParameterIndex : std::size_t {
  kEmbedding,
  kWeight0,
  kBias0,
  kWeight1,
  kBias1,
  kWeight2,
  kBias2,
  kScale,
};

// kLanes windows of text and the character that follows each.
struct MicroBatch {
  std::vector<std::uint8_t> context;  // [kLanes][context]
  std::array<std::uint8_t, kLanes> target{};
};

// logits = scale * (W2 tanh(W1 tanh(W0 embed(context) + b0) + b1) + b2), cross-entropy loss.
// Holds the shapes and scratch memory; the parameters are the caller's, one flat vector.
// Not thread-safe: one object per thread.
class Model {
 public:
  explicit Model(const ModelConfig& config);

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] const std::vector<ParameterTensor>& tensors() const { return tensors_; }
  [[nodiscard]] std::size_t parameter_count() const { return parameter_count_; }

  // Fills `parameters` (uniform, scaled by fan-in; biases 0, scale 1) and moves the generator on.
  void Initialize(CounterRng& rng, std::span<float> parameters) const;

  // Returns the loss summed over the samples, in nats.
  float Loss(const MicroBatch& batch, std::span<const float> parameters);

  // As Loss, and writes the gradient of that sum into all of `gradient`.
  float LossAndGradient(const MicroBatch& batch, std::span<const float> parameters,
                        std::span<float> gradient);

 private:
  void AddTensor(std::string name, sealpoint::Shape shape,
                 std::optional<int> tensor_parallel_dim = std::nullopt);
  void Forward(const MicroBatch& batch, std::span<const float> parameters);
  float Softmax(const MicroBatch& batch, float scale);
  void Backward(const MicroBatch& batch, std::span<const float> parameters,
                std::span<float> gradient);
  void BackwardEmbedding(const MicroBatch& batch, std::span<float> gradient);

  ModelConfig config_;
  std::vector<ParameterTensor> tensors_;
  std::size_t parameter_count_ = 0;
  DenseShape dense0_;
  DenseShape dense1_;
  DenseShape dense2_;
  // Activations and their gradients, [feature][sample].
  std::vector<float> input_, hidden0_, hidden1_, output_;
  std::vector<float> dinput_, dhidden0_, dhidden1_, doutput_;
  std::vector<float> probability_error_;  // d loss / d logit
};

}  // namespace char_lm
