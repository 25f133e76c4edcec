// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "lanes.h"

namespace char_lm {

// A dense layer: weight [outputs, inputs] row-major, bias [outputs].
struct DenseShape {
  std::size_t inputs;  // a multiple of kLanes
  std::size_t outputs;
};

// y = weight * x + bias; x is [inputs][kLanes], y is [outputs][kLanes].
void DenseForward(DenseShape shape, std::span<const float> weight, std::span<const float> bias,
                  std::span<const float> x, std::span<float> y);

// Writes (does not add to) the gradients of weight and bias, summed over the samples.
void DenseParameterGradient(DenseShape shape, std::span<const float> x, std::span<const float> dy,
                            std::span<float> dweight, std::span<float> dbias);

// dx = transposed weight * dy.
void DenseInputGradient(DenseShape shape, std::span<const float> weight, std::span<const float> dy,
                        std::span<float> dx);

// x = tanh(x), and dx = dx * (1 - x^2) where x is the output of the former.
void TanhForward(std::span<float> x);
void TanhBackward(std::span<const float> x, std::span<float> dx);

}  // namespace char_lm
