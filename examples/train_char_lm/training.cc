// SPDX-License-Identifier: Apache-2.0
#include "training.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "../or_abort.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"

namespace sp = sealpoint;

namespace char_lm {
namespace {

constexpr std::size_t kMicroBatches = 12;
constexpr std::size_t kSamples = 8;  // of each
constexpr std::size_t kBytes = 256;
constexpr std::size_t kPadding = ~std::size_t{0};
enum Index : std::uint8_t { kHiddenWeight, kHiddenBias, kOutputWeight, kOutputBias };

struct Parameter {
  std::string name;
  sp::Shape shape;
  std::optional<int> cut_dim;  // by tensor parallelism; none: every rank has it all
  std::size_t begin = 0;       // of its elements in the flat vector of all parameters
  std::size_t count = 0;
};

std::vector<Parameter> ParametersOf(std::size_t hidden) {
  // The outputs of one layer are cut, and the inputs of the next, as in Megatron-LM.
  std::vector<Parameter> parameters = {{"model.hidden.weight", {kContext * kBytes, hidden}, 1},
                                       {"model.hidden.bias", {hidden}, std::nullopt},
                                       {"model.output.weight", {hidden, kBytes}, 0},
                                       {"model.output.bias", {kBytes}, std::nullopt}};
  std::size_t end = 0;
  for (Parameter& parameter : parameters) {
    parameter.begin = end;
    parameter.count = OrAbort(sp::ElementCount(parameter.shape));
    end += parameter.count;
  }
  return parameters;
}

// The n-th random number of a key (SplitMix64; Steele, Lea and Flood, "Fast splittable pseudorandom
// number generators", 2014). Every rank can compute any of them, and there is no state to save.
std::uint64_t RandomNumber(std::uint64_t key, std::uint64_t n) {
  std::uint64_t z = key + (n + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

// Weights uniform, scaled by the number of inputs; biases 0.
void Initialize(std::size_t hidden, std::uint64_t key, std::span<float> values) {
  for (const auto& [name, shape, cut_dim, begin, count] : ParametersOf(hidden)) {
    if (!cut_dim) continue;
    const auto inputs = static_cast<float>(begin == 0 ? kContext : hidden);
    for (std::size_t i = begin; i < begin + count; ++i) {  // of 24 bits: converted exactly
      const auto bits = static_cast<std::int32_t>(RandomNumber(key, i) >> 40U) - (1 << 23);
      values[i] = std::sqrt(1 / inputs) * static_cast<float>(bits) * 0x1p-23F;
    }
  }
}

// The cross-entropy, in nats, of the last byte of a window of text after those before it, with
// logits = output.weight tanh(sum of a row of hidden.weight per place and byte). Adds its gradient.
// A compiler that keeps to IEEE 754 adds in the order that is written here, in vectors or not.
float LossAndGradient(std::size_t width, std::span<const std::uint8_t> window,
                      std::span<const float> values, std::span<float> gradient) {
  const std::vector<Parameter> parameters = ParametersOf(width);
  const auto value = [&](Index which) { return &values[parameters[which].begin]; };
  const auto slope = [&](Index which) { return &gradient[parameters[which].begin]; };
  const auto row = [&](std::size_t place) { return (place * kBytes + window[place]) * width; };

  std::vector<float> hidden(value(kHiddenBias), value(kHiddenBias) + width);
  for (std::size_t place = 0; place < kContext; ++place) {
    const float* const weight = value(kHiddenWeight) + row(place);
    for (std::size_t h = 0; h < width; ++h) hidden[h] += weight[h];
  }
  std::vector<float> logits(value(kOutputBias), value(kOutputBias) + kBytes);
  for (std::size_t h = 0; h < width; ++h) {
    hidden[h] = std::tanh(hidden[h]);
    const float* const weight = value(kOutputWeight) + h * kBytes;
    for (std::size_t b = 0; b < kBytes; ++b) logits[b] += weight[b] * hidden[h];
  }
  const float largest = *std::max_element(logits.begin(), logits.end());
  const float missed_by = largest - logits[window.back()];
  float sum = 0;
  for (float& logit : logits) sum += logit = std::exp(logit - largest);

  for (float& logit : logits) logit /= sum;
  logits[window.back()] -= 1;  // they are their own gradient now
  for (std::size_t b = 0; b < kBytes; ++b) slope(kOutputBias)[b] += logits[b];
  for (std::size_t h = 0; h < width; ++h) {
    float dhidden = 0;
    for (std::size_t b = 0; b < kBytes; ++b) {
      slope(kOutputWeight)[h * kBytes + b] += logits[b] * hidden[h];
      dhidden += logits[b] * value(kOutputWeight)[h * kBytes + b];
    }
    dhidden *= 1 - hidden[h] * hidden[h];
    slope(kHiddenBias)[h] += dhidden;
    for (std::size_t place = 0; place < kContext; ++place) {
      slope(kHiddenWeight)[row(place) + h] += dhidden;
    }
  }
  return std::log(sum) + missed_by;
}

sp::Placement PlacementOf(const Parameter& parameter, bool is_moment) {
  sp::Placement placement = {sp::Replicate{"tensor"}, sp::Replicate{"data"}};
  if (parameter.cut_dim) placement[0] = sp::Shard{.dim = *parameter.cut_dim, .axis = "tensor"};
  if (is_moment) placement[1] = sp::ShardFlat{.axes = {"data"}};
  return placement;
}

Part PartOf(std::size_t hidden, const sp::Mesh& mesh, int rank, bool is_moment) {
  Part part;
  for (const Parameter& parameter : ParametersOf(hidden)) {
    const sp::Shape& shape = parameter.shape;
    const auto layout =
        OrAbort(sp::PlaceTensor(mesh, rank, shape, PlacementOf(parameter, is_moment)));
    const std::size_t begin = part.size();
    part.resize(begin + OrAbort(sp::ElementCount(layout.shape)), kPadding);
    for (const auto& [region, local_offset, strides] : layout.parts) {
      const auto& [offset, extent] = region.box;  // of one or two dimensions
      for (std::uint64_t at = region.run.begin; at < region.run.end; ++at) {
        const std::uint64_t column = offset.back() + at % extent.back();
        const std::uint64_t row = shape.size() == 1 ? 0 : offset[0] + at / extent[1];
        part[begin + local_offset + at - region.run.begin] =
            parameter.begin + row * shape.back() + column;
      }
    }
  }
  return part;
}

void Pick(const Part& part, std::span<const float> flat, std::span<float> local) {
  for (std::size_t i = 0; i < part.size(); ++i) {
    local[i] = part[i] == kPadding ? 0.0F : flat[part[i]];
  }
}

// In memory that travels between ranks.
std::span<float> FloatsIn(sp::Bytes& bytes) {
  return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
}

}  // namespace

Training::Training(std::uint64_t seed, std::size_t hidden, std::span<const std::uint8_t> text,
                   const sp::Mesh& mesh, sp::Communicator& comm)
    : seed_(seed), hidden_(hidden), text_(text), mesh_(mesh), comm_(comm) {
  // Each rank knows what all have, without asking them.
  for (int rank = 0; rank < mesh.size(); ++rank) {
    weight_parts_.push_back(PartOf(hidden, mesh, rank, false));
    moment_parts_.push_back(PartOf(hidden, mesh, rank, true));
  }
  weights_.resize(weight_parts_[rank_].size());
  exp_avg_.resize(moment_parts_[rank_].size());
  exp_avg_sq_.resize(exp_avg_.size());
  values_.resize(ParametersOf(hidden).back().begin + kBytes);
  Initialize(hidden, ~seed, values_);
  Pick(weight_parts_[rank_], values_, weights_);
}

float Training::Step() {
  // To each rank go its part of the gradient of each of this rank's micro-batches, and the loss.
  const std::size_t ranks = moment_parts_.size();
  std::vector<sp::Bytes> outgoing(ranks);
  std::vector<float> gradient;
  for (std::size_t m = rank_; m < kMicroBatches; m += ranks) {
    float loss = 0;
    gradient.assign(values_.size(), 0);
    for (std::size_t s = 0; s < kSamples; ++s) {
      const std::uint64_t n = (step_ * kMicroBatches + m) * kSamples + s;
      const std::uint64_t place = RandomNumber(seed_, n) % (text_.size() - kContext);
      loss += LossAndGradient(hidden_, text_.subspan(place, kContext + 1), values_, gradient);
    }
    for (std::size_t to = 0; to < ranks; ++to) {
      const std::size_t count = moment_parts_[to].size() + 1;
      outgoing[to].resize(outgoing[to].size() + count * sizeof(float));
      const std::span<float> message = FloatsIn(outgoing[to]).last(count);
      Pick(moment_parts_[to], gradient, message);
      message.back() = loss;
    }
  }
  // A training whose ranks do not reach each other cannot go on: value() ends the program.
  std::vector<sp::Bytes> incoming = OrAbort(comm_.AllToAll(std::move(outgoing)));

  float loss = 0;
  const std::size_t count = exp_avg_.size();
  std::vector<float> sum(count);
  for (std::size_t m = 0; m < kMicroBatches; ++m) {
    const auto part = FloatsIn(incoming[m % ranks]).subspan(m / ranks * (count + 1), count + 1);
    for (std::size_t i = 0; i < count; ++i) sum[i] += part[i];
    loss += part.back();
  }
  // Adam (Kingma and Ba, 2015, algorithm 1), each element for itself.
  constexpr auto kMeanOf = static_cast<float>(kMicroBatches * kSamples);
  constexpr float kRate = 1e-3F, kBeta1 = 0.9F, kBeta2 = 0.99F, kEpsilon = 1e-8F;
  const auto t = static_cast<float>(++step_);
  const float rate = kRate / (1 - std::pow(kBeta1, t));
  const float correction = 1 - std::pow(kBeta2, t);
  std::vector<float> updated(count);
  Pick(moment_parts_[rank_], values_, updated);
  for (std::size_t i = 0; i < count; ++i) {
    const float g = sum[i] / kMeanOf;
    exp_avg_[i] = kBeta1 * exp_avg_[i] + (1 - kBeta1) * g;
    exp_avg_sq_[i] = kBeta2 * exp_avg_sq_[i] + (1 - kBeta2) * g * g;
    updated[i] -= rate * exp_avg_[i] / (std::sqrt(exp_avg_sq_[i] / correction) + kEpsilon);
  }
  Gather(moment_parts_, updated, values_);
  Pick(weight_parts_[rank_], values_, weights_);
  return loss / kMeanOf;
}

void Training::Gather(const std::vector<Part>& parts, std::span<const float> own,
                      std::span<float> flat) const {
  std::vector<sp::Bytes> all = OrAbort(comm_.AllGather(std::as_bytes(own)));
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const std::span<const float> local = FloatsIn(all[rank]);
    for (std::size_t i = 0; i < local.size(); ++i) {
      if (const std::size_t element = parts[rank][i]; element != kPadding) flat[element] = local[i];
    }
  }
}

std::vector<LocalTensor> Training::tensors() {
  std::vector<LocalTensor> all;
  const auto add = [&](const std::string& prefix, bool is_moment, std::span<float> memory) {
    for (const Parameter& parameter : ParametersOf(hidden_)) {
      const sp::Placement placement = PlacementOf(parameter, is_moment);
      const auto layout = OrAbort(sp::PlaceTensor(mesh_, comm_.rank(), parameter.shape, placement));
      const std::size_t count = OrAbort(sp::ElementCount(layout.shape));
      all.push_back(
          {prefix + parameter.name, parameter.shape, placement, layout, memory.first(count)});
      memory = memory.subspan(count);
    }
  };
  add("", false, weights_);
  add("optimizer.exp_avg.", true, exp_avg_);
  add("optimizer.exp_avg_sq.", true, exp_avg_sq_);
  return all;
}

std::string Training::arguments() const {
  const std::string digest = sp::ComputeDigest(std::as_bytes(text_)).ToHex();
  return "{\"seed\": " + std::to_string(seed_) + ", \"text\": \"" + digest + "\"}";
}

void Training::ContinueFrom(std::uint64_t step) {
  step_ = step;
  Gather(weight_parts_, weights_, values_);
}

std::string Training::StateDigest() const {
  const std::size_t count = values_.size();
  std::vector<float> state(3 * count);
  Gather(weight_parts_, weights_, std::span(state).first(count));
  Gather(moment_parts_, exp_avg_, std::span(state).subspan(count, count));
  Gather(moment_parts_, exp_avg_sq_, std::span(state).last(count));
  return sp::ComputeDigest(std::as_bytes(std::span(state))).ToHex().substr(0, 16);
}

}  // namespace char_lm
