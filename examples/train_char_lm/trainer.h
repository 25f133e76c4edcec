// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "adam.h"
#include "compute.h"
#include "corpus.h"
#include "exchange.h"
#include "host_compute.h"
#include "model.h"
#include "random.h"
#include "sharded_state.h"

namespace char_lm {

// Everything that decides the numbers. The mesh, and where the text lies, does not.
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
// ranks; each rank receives the micro-batch gradients of its shard of the parameters and adds them
// in the order of micro-batches. So the parameters after a step, and the losses, have the same bits
// on any mesh.
class Trainer {
 public:
  // `corpus` and `exchange` are borrowed. The corpus must be longer than the model's context, and
  // the mesh have as many ranks as `exchange` and the axes "data" and "tensor".
  Trainer(const TrainingArguments& arguments, const Corpus& corpus, GradientExchange& exchange,
          const sealpoint::Mesh& mesh, const MakeCompute& make_compute = OnHost());

  // Collective. Returns the mean loss per character, in nats, before the update.
  float Step();

  [[nodiscard]] std::uint64_t step() const { return step_; }  // steps done
  [[nodiscard]] const sealpoint::Mesh& mesh() const { return mesh_; }
  [[nodiscard]] std::size_t parameter_count() const { return model_.parameter_count(); }

  // Where this rank computes: a CUDA device, or kHostDevice.
  [[nodiscard]] int device() const { return compute_->memory().device; }

  // The state of this rank, to save and to load: every tensor of ShardedState, and the objects
  // "training_arguments" (JSON), "rng" and "data_loader" (little-endian integers).
  [[nodiscard]] std::vector<LocalTensor> Tensors() const {
    return state_.Tensors(compute_->memory());
  }
  [[nodiscard]] std::vector<StateObject> Objects() const;

  // Takes the position from saved objects, in any order. Returns false, says why and changes
  // nothing if one is missing or malformed, or if the training had other arguments or another
  // corpus.
  bool RestoreObjects(std::span<const StateObject> objects, std::string& error);

  // Collective; to be called when all ranks have filled their tensors.
  void FinishRestore();
  // Collective: whole parameters, then whole first and second moments, the same on any mesh; from
  // the memory that Tensors() tells of.
  [[nodiscard]] std::vector<float> WholeState() const;

 private:
  [[nodiscard]] std::string ArgumentsJson() const;
  void FillMicroBatch(std::size_t number, MicroBatch& batch) const;
  void ComputeGradients();

  TrainingArguments arguments_;
  const Corpus& corpus_;
  GradientExchange& exchange_;
  const sealpoint::Mesh mesh_;
  Model model_;
  ShardedState state_;
  std::unique_ptr<Compute> compute_;
  CounterRng rng_;
  std::uint64_t step_ = 0;

  // Scratch, kept over steps.
  Range my_micro_batches_;
  std::vector<std::size_t> send_counts_, receive_counts_, loss_counts_;
  std::vector<float> send_;                // [rank][my micro-batch][element of its shard]
  std::vector<float> receive_;             // [micro-batch][element of my shard]
  std::vector<float> my_losses_, losses_;  // per micro-batch
};

}  // namespace char_lm
