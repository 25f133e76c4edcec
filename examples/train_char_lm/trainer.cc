// SPDX-License-Identifier: Apache-2.0
#include "trainer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <charconv>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

namespace char_lm {
namespace {

constexpr std::string_view kArgumentsName = "training_arguments";
constexpr std::string_view kRngName = "rng";
constexpr std::string_view kDataLoaderName = "data_loader";

TrainingArguments WithVocabulary(TrainingArguments arguments, const Corpus& corpus) {
  arguments.model.vocabulary = corpus.vocabulary.size();
  return arguments;
}

std::string EncodeIntegers(std::initializer_list<std::uint64_t> values) {
  std::string bytes;
  for (const std::uint64_t value : values) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes.push_back(static_cast<char>((value >> shift) & 0xFFU));
    }
  }
  return bytes;
}

// The `count` integers in `bytes`, or nothing if the length is another.
std::optional<std::vector<std::uint64_t>> DecodeIntegers(std::string_view bytes,
                                                         std::size_t count) {
  if (bytes.size() != count * sizeof(std::uint64_t)) {
    return std::nullopt;
  }
  std::vector<std::uint64_t> values(count, 0);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    values[i / 8] |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i]))
                     << (i % 8 * 8);
  }
  return values;
}

std::optional<std::string_view> FindObject(std::span<const StateObject> objects,
                                           std::string_view name) {
  const auto found = std::find_if(objects.begin(), objects.end(),
                                  [&](const StateObject& object) { return object.name == name; });
  return found == objects.end() ? std::nullopt : std::optional<std::string_view>(found->bytes);
}

// The shortest text that reads back as the same value.
template <typename Number>
void AppendJsonNumber(std::string_view key, Number value, std::string& json) {
  std::array<char, 32> digits{};
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  json += json.empty() ? "{\"" : ", \"";
  json += key;
  json += "\": ";
  json.append(digits.data(), written.ptr);
}

}  // namespace

Trainer::Trainer(const TrainingArguments& arguments, const Corpus& corpus,
                 GradientExchange& exchange, const sealpoint::Mesh& mesh,
                 const MakeCompute& make_compute)
    : arguments_(WithVocabulary(arguments, corpus)),
      corpus_(corpus),
      exchange_(exchange),
      mesh_(mesh),
      model_(arguments_.model),
      state_(model_.tensors(), mesh, exchange.rank()),
      compute_(make_compute(model_, state_, arguments_.adam)),
      rng_(arguments.seed, 0),
      my_micro_batches_(EvenPart(kMicroBatches, exchange.rank(), exchange.size())),
      receive_(kMicroBatches * state_.shard_size()),
      my_losses_(my_micro_batches_.size()),
      losses_(kMicroBatches) {
  assert(corpus.tokens.size() > arguments.model.context);
  for (std::size_t r = 0; r < exchange.size(); ++r) {
    const std::size_t micro_batches = EvenPart(kMicroBatches, r, exchange.size()).size();
    send_counts_.push_back(my_micro_batches_.size() * state_.shards().packed_sizes()[r]);
    receive_counts_.push_back(micro_batches * state_.shard_size());
    loss_counts_.push_back(micro_batches);
  }
  send_.resize(std::accumulate(send_counts_.begin(), send_counts_.end(), std::size_t{0}));
  model_.Initialize(rng_, compute_->parameters());
  compute_->UseParameters();
}

float Trainer::Step() {
  ComputeGradients();
  exchange_.AllToAll(send_, send_counts_, receive_, receive_counts_);
  exchange_.AllGather(my_losses_, losses_, loss_counts_);

  const std::span<const float> shard = compute_->Update(step_ + 1, receive_);
  state_.GatherShards(exchange_, shard, compute_->parameters());
  compute_->UseParameters();

  ++step_;
  rng_.Advance(kMicroBatches * kLanes);
  float loss = 0.0F;
  for (const float part : losses_) {
    loss += part;
  }
  return loss / static_cast<float>(kMicroBatches * kLanes);
}

void Trainer::FillMicroBatch(std::size_t number, MicroBatch& batch) const {
  const std::size_t context = arguments_.model.context;
  const std::size_t windows = corpus_.tokens.size() - context;
  batch.context.resize(kLanes * context);
  for (std::size_t s = 0; s < kLanes; ++s) {
    const std::size_t begin = rng_.Peek(number * kLanes + s) % windows;
    std::copy_n(&corpus_.tokens[begin], context, &batch.context[s * context]);
    batch.target.at(s) = corpus_.tokens[begin + context];
  }
}

void Trainer::ComputeGradients() {
  MicroBatch batch;
  const std::size_t count = my_micro_batches_.size();
  for (std::size_t i = 0; i < count; ++i) {
    FillMicroBatch(my_micro_batches_.begin + i, batch);
    const Compute::Gradient gradient = compute_->LossAndGradient(batch);
    my_losses_[i] = gradient.loss;
    std::span<float> to(send_);
    for (std::size_t rank = 0; rank < exchange_.size(); ++rank) {
      const std::size_t size = state_.shards().packed_sizes()[rank];
      state_.shards().Pack(rank, gradient.values, to.subspan(i * size, size));
      to = to.subspan(count * size);
    }
  }
}

void Trainer::FinishRestore() {
  const std::span<const float> weights = compute_->OnHost(compute_->memory().weights);
  state_.GatherWeights(exchange_, weights, compute_->parameters());
  compute_->UseParameters();
}

std::vector<float> Trainer::WholeState() const {
  const std::size_t count = model_.parameter_count();
  std::vector<float> state(3 * count);
  const std::span<float> whole(state);
  const auto [weights, exp_avg, exp_avg_sq, device, stream] = compute_->memory();
  state_.GatherWeights(exchange_, compute_->OnHost(weights), whole.first(count));
  state_.GatherShards(exchange_, compute_->OnHost(exp_avg), whole.subspan(count, count));
  state_.GatherShards(exchange_, compute_->OnHost(exp_avg_sq), whole.last(count));
  return state;
}

std::string Trainer::ArgumentsJson() const {
  const auto& [seed, model, adam] = arguments_;
  std::string json;
  AppendJsonNumber("seed", seed, json);
  AppendJsonNumber("vocabulary", model.vocabulary, json);
  AppendJsonNumber("context", model.context, json);
  AppendJsonNumber("embedding", model.embedding, json);
  AppendJsonNumber("hidden0", model.hidden0, json);
  AppendJsonNumber("hidden1", model.hidden1, json);
  AppendJsonNumber("learning_rate", adam.learning_rate, json);
  AppendJsonNumber("beta1", adam.beta1, json);
  AppendJsonNumber("beta2", adam.beta2, json);
  AppendJsonNumber("epsilon", adam.epsilon, json);
  return json + "}";
}

std::vector<StateObject> Trainer::Objects() const {
  return {{.name = std::string(kArgumentsName),
           .media_type = "application/json",
           .bytes = ArgumentsJson()},
          {.name = std::string(kRngName),
           .media_type = "application/octet-stream",
           .bytes = EncodeIntegers({rng_.key(), rng_.counter()})},
          {.name = std::string(kDataLoaderName),
           .media_type = "application/octet-stream",
           .bytes = EncodeIntegers({step_, corpus_.tokens.size(), corpus_.fingerprint})}};
}

bool Trainer::RestoreObjects(std::span<const StateObject> objects, std::string& error) {
  const auto arguments = FindObject(objects, kArgumentsName);
  const auto rng = DecodeIntegers(FindObject(objects, kRngName).value_or(""), 2);
  const auto loader = DecodeIntegers(FindObject(objects, kDataLoaderName).value_or(""), 3);
  if (!arguments || !rng || !loader) {
    error = "a state object is missing or malformed";
    return false;
  }
  if (*arguments != ArgumentsJson()) {
    error =
        "the checkpoint was trained with " + std::string(*arguments) + ", now " + ArgumentsJson();
    return false;
  }
  if ((*loader)[1] != corpus_.tokens.size() || (*loader)[2] != corpus_.fingerprint) {
    error = "the checkpoint was trained on another corpus";
    return false;
  }
  rng_ = CounterRng((*rng)[0], (*rng)[1]);
  step_ = (*loader)[0];
  return true;
}

}  // namespace char_lm
