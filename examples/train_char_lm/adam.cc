// SPDX-License-Identifier: Apache-2.0
#include "adam.h"

#include <cmath>
#include <cstddef>

namespace char_lm {

AdamRates RatesAt(const AdamConfig& config, std::uint64_t step) {
  const auto t = static_cast<double>(step);
  const auto correction1 = static_cast<float>(1.0 - std::pow(static_cast<double>(config.beta1), t));
  const auto correction2 = static_cast<float>(1.0 - std::pow(static_cast<double>(config.beta2), t));
  return {.rate = config.learning_rate / correction1, .correction2 = correction2};
}

void AdamUpdate(const AdamConfig& config, std::uint64_t step, std::span<const float> gradient,
                std::span<float> parameters, std::span<float> exp_avg,
                std::span<float> exp_avg_sq) {
  const auto [rate, correction2] = RatesAt(config, step);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const float g = gradient[i];
    exp_avg[i] = config.beta1 * exp_avg[i] + (1.0F - config.beta1) * g;
    exp_avg_sq[i] = config.beta2 * exp_avg_sq[i] + (1.0F - config.beta2) * g * g;
    parameters[i] -= rate * exp_avg[i] / (std::sqrt(exp_avg_sq[i] / correction2) + config.epsilon);
  }
}

}  // namespace char_lm
