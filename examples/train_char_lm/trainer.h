// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "adam.h"
#include "corpus.h"
#include "exchange.h"
#include "model.h"
#include "random.h"
#include "sharded_state.h"

namespace char_lm {

// Everything that decides the numbers. How many ranks compute, and where the text lies, does not.
struct TrainingArguments {
  std::uint64_t seed = 1;
  ModelConfig model;  // `vocabulary` is taken from the corpus
  AdamConfig adam;
};

// A named piece of state that is not a tensor; the same on all ranks.
struct StateObject {
  std::string name;
  std::string media_type;
  std::string bytes;
};

// Trains on all ranks of `exchange`. A step is always kMicroBatches micro-batches, divided over the
// ranks; each rank receives the micro-batch gradients of the rows that it owns and adds them in the
// order of micro-batches. So the parameters after a step have the same bits on any number of ranks.
class Trainer {
 public:
  static constexpr std::size_t kMicroBatches = 12;

  // `corpus` and `exchange` are borrowed. The corpus must be longer than the model's context.
  Trainer(const TrainingArguments& arguments, const Corpus& corpus, GradientExchange& exchange);

  // Collective. Returns the mean loss per character, in nats, before the update.
  float Step();

  [[nodiscard]] std::uint64_t step() const { return step_; }  // steps done
  [[nodiscard]] std::span<const float> parameters() const { return state_.parameters(); }

  // The state of this rank, to save and to load: every tensor of ShardedState, and the objects
  // "training_arguments" (JSON), "rng" and "data_loader" (little-endian integers).
  [[nodiscard]] std::vector<ShardedTensor> Tensors() { return state_.Tensors(); }
  [[nodiscard]] std::vector<StateObject> Objects() const;

  // Takes the position from saved objects, in any order. Returns false, says why and changes
  // nothing if one is missing or malformed, or if the training had other arguments or another
  // corpus.
  bool RestoreObjects(std::span<const StateObject> objects, std::string& error);

  // Collective; to be called when all ranks have filled their tensors.
  void FinishRestore() { state_.AssembleParameters(exchange_); }

 private:
  [[nodiscard]] std::string ArgumentsJson() const;
  void FillMicroBatch(std::size_t number, MicroBatch& batch) const;
  void ComputeGradients();
  void SumGradients();

  TrainingArguments arguments_;
  const Corpus& corpus_;
  GradientExchange& exchange_;
  Model model_;
  ShardedState state_;
  CounterRng rng_;
  std::uint64_t step_ = 0;

  // Scratch, kept over steps.
  Range my_micro_batches_;
  std::vector<std::size_t> send_counts_, receive_counts_, loss_counts_;
  std::vector<float> gradient_;              // of one micro-batch
  std::vector<float> send_;                  // [owner][my micro-batch][row elements]
  std::vector<float> receive_;               // [micro-batch][owned row elements]
  std::vector<float> gradient_sum_, owned_;  // [owned row elements]
  std::vector<float> my_losses_, losses_;    // per micro-batch
};

}  // namespace char_lm
