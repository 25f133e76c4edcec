// SPDX-License-Identifier: Apache-2.0
#include "kernels.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

namespace char_lm {
namespace {

// Eight floats in whatever registers the target has: g++ and clang lower it to pairs where there is
// no wider unit. Passed by reference only, since passing it by value would depend on the
// instruction set.
using Lanes [[gnu::vector_size(kLanes * sizeof(float))]] = float;

// Rows of a product computed together, so that each loaded vector is used this many times.
constexpr std::size_t kRowBlock = 4;

void Load(const float* address, Lanes& lanes) { std::memcpy(&lanes, address, sizeof(lanes)); }
void Store(const Lanes& lanes, float* address) { std::memcpy(address, &lanes, sizeof(lanes)); }

template <std::size_t kRows>
void ForwardRows(std::size_t inputs, const float* weight, const float* bias, const float* x,
                 float* y) {
  std::array<Lanes, kRows> sums;
  for (std::size_t r = 0; r < kRows; ++r) {
    sums[r] = Lanes{} + bias[r];
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    Lanes value;
    Load(x + i * kLanes, value);
    for (std::size_t r = 0; r < kRows; ++r) {
      sums[r] += weight[r * inputs + i] * value;
    }
  }
  for (std::size_t r = 0; r < kRows; ++r) {
    Store(sums[r], y + r * kLanes);
  }
}

// Adds the contribution of kRows outputs to dx.
template <std::size_t kRows>
void InputGradientRows(std::size_t inputs, const float* weight, const float* dy, float* dx) {
  std::array<Lanes, kRows> slopes;
  for (std::size_t r = 0; r < kRows; ++r) {
    Load(dy + r * kLanes, slopes[r]);
  }
  for (std::size_t i = 0; i < inputs; ++i) {
    Lanes sum;
    Load(dx + i * kLanes, sum);
    for (std::size_t r = 0; r < kRows; ++r) {
      sum += weight[r * inputs + i] * slopes[r];
    }
    Store(sum, dx + i * kLanes);
  }
}

// One row of the weight gradient; `samples` is x transposed to [kLanes][inputs].
void WeightGradientRow(std::size_t inputs, const float* samples, const float* dy, float* dweight) {
  for (std::size_t i = 0; i < inputs; i += kLanes) {
    Lanes sum{};
    for (std::size_t s = 0; s < kLanes; ++s) {
      Lanes value;
      Load(samples + s * inputs + i, value);
      sum += dy[s] * value;
    }
    Store(sum, dweight + i);
  }
}

}  // namespace

void DenseForward(DenseShape shape, std::span<const float> weight, std::span<const float> bias,
                  std::span<const float> x, std::span<float> y) {
  std::size_t row = 0;
  for (; row + kRowBlock <= shape.outputs; row += kRowBlock) {
    ForwardRows<kRowBlock>(shape.inputs, &weight[row * shape.inputs], &bias[row], x.data(),
                           &y[row * kLanes]);
  }
  for (; row < shape.outputs; ++row) {
    ForwardRows<1>(shape.inputs, &weight[row * shape.inputs], &bias[row], x.data(),
                   &y[row * kLanes]);
  }
}

void DenseParameterGradient(DenseShape shape, std::span<const float> x, std::span<const float> dy,
                            std::span<float> dweight, std::span<float> dbias) {
  assert(shape.inputs % kLanes == 0);
  std::vector<float> samples(kLanes * shape.inputs);
  for (std::size_t i = 0; i < shape.inputs; ++i) {
    for (std::size_t s = 0; s < kLanes; ++s) {
      samples[s * shape.inputs + i] = x[i * kLanes + s];
    }
  }
  for (std::size_t row = 0; row < shape.outputs; ++row) {
    const float* slopes = &dy[row * kLanes];
    WeightGradientRow(shape.inputs, samples.data(), slopes, &dweight[row * shape.inputs]);
    float sum = 0.0F;
    for (std::size_t s = 0; s < kLanes; ++s) {
      sum += slopes[s];
    }
    dbias[row] = sum;
  }
}

void DenseInputGradient(DenseShape shape, std::span<const float> weight, std::span<const float> dy,
                        std::span<float> dx) {
  std::fill(dx.begin(), dx.end(), 0.0F);
  std::size_t row = 0;
  for (; row + kRowBlock <= shape.outputs; row += kRowBlock) {
    InputGradientRows<kRowBlock>(shape.inputs, &weight[row * shape.inputs], &dy[row * kLanes],
                                 dx.data());
  }
  for (; row < shape.outputs; ++row) {
    InputGradientRows<1>(shape.inputs, &weight[row * shape.inputs], &dy[row * kLanes], dx.data());
  }
}

void TanhForward(std::span<float> x) {
  for (float& value : x) {
    value = std::tanh(value);
  }
}

void TanhBackward(std::span<const float> x, std::span<float> dx) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    dx[i] *= 1.0F - x[i] * x[i];
  }
}

}  // namespace char_lm
