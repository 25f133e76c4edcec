// SPDX-License-Identifier: Apache-2.0
// The jobs of the device kernels, run on the host, against the host's own kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "adam.h"
#include "device_kernels.h"
#include "fingerprint.h"
#include "kernels.h"
#include "random.h"

namespace char_lm {
namespace {

// The threads one after the other, in some order.
template <typename Job>
void RunThreads(const Job& job) {
  std::vector<std::size_t> threads(job.ThreadCount());
  std::iota(threads.begin(), threads.end(), std::size_t{0});
  std::shuffle(threads.begin(), threads.end(), std::mt19937(7));
  for (const std::size_t thread : threads) {
    job.Run(thread);
  }
}

std::vector<float> Numbers(std::size_t count) {
  static CounterRng rng(5, 0);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = rng.PeekSymmetric(i);
  }
  rng.Advance(count);
  return numbers;
}

constexpr DenseShape kShape{.inputs = 24, .outputs = 11};  // rows in blocks, and some more

TEST(DeviceKernels, DenseForward) {
  const auto weight = Numbers(kShape.inputs * kShape.outputs);
  const auto bias = Numbers(kShape.outputs);
  const auto x = Numbers(kShape.inputs * kLanes);
  std::vector<float> expected(kShape.outputs * kLanes);
  auto y = Numbers(expected.size());
  DenseForward(kShape, weight, bias, x, expected);
  RunThreads(jobs::DenseForward{.inputs = kShape.inputs,
                                .outputs = kShape.outputs,
                                .weight = weight.data(),
                                .bias = bias.data(),
                                .x = x.data(),
                                .y = y.data()});
  EXPECT_TRUE(SameBits(y, expected));
}

TEST(DeviceKernels, WeightAndBiasGradient) {
  const auto x = Numbers(kShape.inputs * kLanes);
  const auto dy = Numbers(kShape.outputs * kLanes);
  std::vector<float> expected_weight(kShape.inputs * kShape.outputs);
  std::vector<float> expected_bias(kShape.outputs);
  auto dweight = Numbers(expected_weight.size());
  auto dbias = Numbers(expected_bias.size());
  DenseParameterGradient(kShape, x, dy, expected_weight, expected_bias);
  RunThreads(jobs::WeightGradient{.inputs = kShape.inputs,
                                  .outputs = kShape.outputs,
                                  .x = x.data(),
                                  .dy = dy.data(),
                                  .dweight = dweight.data()});
  RunThreads(jobs::BiasGradient{.outputs = kShape.outputs, .dy = dy.data(), .dbias = dbias.data()});
  EXPECT_TRUE(SameBits(dweight, expected_weight));
  EXPECT_TRUE(SameBits(dbias, expected_bias));
}

TEST(DeviceKernels, InputGradient) {
  const auto weight = Numbers(kShape.inputs * kShape.outputs);
  const auto dy = Numbers(kShape.outputs * kLanes);
  std::vector<float> expected(kShape.inputs * kLanes);
  auto dx = Numbers(expected.size());
  DenseInputGradient(kShape, weight, dy, expected);
  RunThreads(jobs::InputGradient{.inputs = kShape.inputs,
                                 .outputs = kShape.outputs,
                                 .weight = weight.data(),
                                 .dy = dy.data(),
                                 .dx = dx.data()});
  EXPECT_TRUE(SameBits(dx, expected));
}

TEST(DeviceKernels, TanhAndItsGradient) {
  auto x = Numbers(100);
  auto dx = Numbers(x.size());
  auto expected = x;
  auto expected_gradient = dx;
  TanhForward(expected);
  TanhBackward(expected, expected_gradient);
  RunThreads(jobs::Tanh{.count = x.size(), .x = x.data()});
  RunThreads(jobs::TanhGradient{.count = x.size(), .x = x.data(), .dx = dx.data()});
  EXPECT_TRUE(SameBits(x, expected));
  EXPECT_TRUE(SameBits(dx, expected_gradient));
}

TEST(DeviceKernels, AdamUpdate) {
  constexpr std::size_t kCount = 50;
  constexpr std::size_t kMicroBatchCount = 3;
  const AdamConfig config;
  auto parameters = Numbers(kCount);
  auto expected = parameters;
  std::vector<float> exp_avg(kCount), exp_avg_sq(kCount);
  std::vector<float> expected_exp_avg(kCount), expected_exp_avg_sq(kCount);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto gradients = Numbers(kMicroBatchCount * kCount);
    std::vector<float> mean(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const float sum = gradients[i] + gradients[kCount + i] + gradients[2 * kCount + i];
      mean[i] = sum * (1.0F / static_cast<float>(kMicroBatchCount * kLanes));
    }
    AdamUpdate(config, step, mean, expected, expected_exp_avg, expected_exp_avg_sq);
    const auto [rate, correction2] = RatesAt(config, step);
    RunThreads(jobs::AdamUpdate{.count = kCount,
                                .micro_batches = kMicroBatchCount,
                                .gradients = gradients.data(),
                                .beta1 = config.beta1,
                                .beta2 = config.beta2,
                                .epsilon = config.epsilon,
                                .rate = rate,
                                .correction2 = correction2,
                                .parameters = parameters.data(),
                                .exp_avg = exp_avg.data(),
                                .exp_avg_sq = exp_avg_sq.data()});
  }
  EXPECT_TRUE(SameBits(parameters, expected));
  EXPECT_TRUE(SameBits(exp_avg, expected_exp_avg));
  EXPECT_TRUE(SameBits(exp_avg_sq, expected_exp_avg_sq));
}

}  // namespace
}  // namespace char_lm
