// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace char_lm {

struct AdamConfig {
  float learning_rate = 1e-3F;
  float beta1 = 0.9F;
  float beta2 = 0.99F;
  float epsilon = 1e-8F;
};

// What the step, which counts from 1, does to the rates: one computation for all elements.
struct AdamRates {
  float rate;         // the learning rate, corrected for the first moment's bias
  float correction2;  // by which the second moment is divided
};
AdamRates RatesAt(const AdamConfig& config, std::uint64_t step);

// One update of some elements (Kingma and Ba, "Adam", 2015, algorithm 1).
// Each element is computed on its own, so the result does not depend on how elements are shared
// among ranks.
void AdamUpdate(const AdamConfig& config, std::uint64_t step, std::span<const float> gradient,
                std::span<float> parameters, std::span<float> exp_avg, std::span<float> exp_avg_sq);

}  // namespace char_lm
