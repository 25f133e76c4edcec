// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "lanes.h"

#if defined(__CUDACC__)
#define CHAR_LM_ON_BOTH __host__ __device__
#else
#define CHAR_LM_ON_BOTH
#endif

// The arithmetic of the training for a device. Each job is a kernel: its members are the kernel's
// argument, and Run(i), for each i below ThreadCount(), is what thread i does. Plain C++17 for the
// host, where tests run it, and for nvcc. Pointers are addresses of the device.
//
// A thread writes what no other thread of the job reads or writes, so nothing depends on the order
// in which threads run. It adds up in the order of kernels.cc, model.cc and adam.cc.
namespace char_lm::jobs {

// X(job)
#define CHAR_LM_JOBS(X) \
  X(Embed)              \
  X(DenseForward)       \
  X(Tanh)               \
  X(Softmax)            \
  X(LogitGradient)      \
  X(ScaleGradient)      \
  X(WeightGradient)     \
  X(BiasGradient)       \
  X(InputGradient)      \
  X(TanhGradient)       \
  X(EmbeddingGradient)  \
  X(AdamUpdate)

// The embeddings of all windows, one behind the other: the model's input.
struct Embed {
  std::size_t context;         // characters in a window
  std::size_t width;           // of an embedding
  const std::uint8_t* tokens;  // [kLanes][context]
  const float* embedding;      // [vocabulary][width]
  float* input;                // [context * width][kLanes]

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return context * width * kLanes; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const {
    const std::size_t feature = i / kLanes;
    const std::size_t token = tokens[i % kLanes * context + feature / width];
    input[i] = embedding[token * width + feature % width];
  }
};

// y = weight * x + bias.
struct DenseForward {
  std::size_t inputs;
  std::size_t outputs;
  const float* weight;  // [outputs][inputs]
  const float* bias;    // [outputs]
  const float* x;       // [inputs][kLanes]
  float* y;             // [outputs][kLanes]

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return outputs * kLanes; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const {
    const std::size_t row = i / kLanes;
    float sum = bias[row];
    for (std::size_t k = 0; k < inputs; ++k) {
      sum += weight[row * inputs + k] * x[k * kLanes + i % kLanes];
    }
    y[i] = sum;
  }
};

struct Tanh {
  std::size_t count;
  float* x;

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return count; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const { x[i] = tanhf(x[i]); }
};

// One sample per thread: its loss, and the error of each character's probability.
struct Softmax {
  std::size_t vocabulary;
  const std::uint8_t* target;  // [kLanes]
  const float* scale;          // one
  const float* output;         // [vocabulary][kLanes]
  float* probability_error;    // [vocabulary][kLanes]
  float* losses;               // [kLanes]

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return kLanes; }
  CHAR_LM_ON_BOTH void Run(std::size_t s) const {
    float largest = *scale * output[s];
    for (std::size_t v = 1; v < vocabulary; ++v) {
      const float logit = *scale * output[v * kLanes + s];
      largest = largest < logit ? logit : largest;
    }
    float sum = 0.0F;
    for (std::size_t v = 0; v < vocabulary; ++v) {
      const float weight = expf(*scale * output[v * kLanes + s] - largest);
      probability_error[v * kLanes + s] = weight;
      sum += weight;
    }
    for (std::size_t v = 0; v < vocabulary; ++v) {
      probability_error[v * kLanes + s] /= sum;
    }
    const std::size_t at_target = target[s] * kLanes + s;
    losses[s] = logf(sum) + largest - *scale * output[at_target];
    probability_error[at_target] -= 1.0F;
  }
};

struct LogitGradient {
  std::size_t count;
  const float* scale;  // one
  const float* probability_error;
  float* doutput;

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return count; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const { doutput[i] = *scale * probability_error[i]; }
};

// One thread: a sum of as many terms as there are logits is short.
struct ScaleGradient {
  std::size_t count;
  const float* probability_error;
  const float* output;
  float* dscale;

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return 1; }
  CHAR_LM_ON_BOTH void Run(std::size_t /*thread*/) const {
    float sum = 0.0F;
    for (std::size_t i = 0; i < count; ++i) {
      sum += probability_error[i] * output[i];
    }
    *dscale = sum;
  }
};

struct WeightGradient {
  std::size_t inputs;
  std::size_t outputs;
  const float* x;   // [inputs][kLanes]
  const float* dy;  // [outputs][kLanes]
  float* dweight;   // [outputs][inputs]

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return outputs * inputs; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const {
    float sum = 0.0F;
    for (std::size_t s = 0; s < kLanes; ++s) {
      sum += dy[i / inputs * kLanes + s] * x[i % inputs * kLanes + s];
    }
    dweight[i] = sum;
  }
};

struct BiasGradient {
  std::size_t outputs;
  const float* dy;  // [outputs][kLanes]
  float* dbias;     // [outputs]

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return outputs; }
  CHAR_LM_ON_BOTH void Run(std::size_t row) const {
    float sum = 0.0F;
    for (std::size_t s = 0; s < kLanes; ++s) {
      sum += dy[row * kLanes + s];
    }
    dbias[row] = sum;
  }
};

// dx = transposed weight * dy.
struct InputGradient {
  std::size_t inputs;
  std::size_t outputs;
  const float* weight;  // [outputs][inputs]
  const float* dy;      // [outputs][kLanes]
  float* dx;            // [inputs][kLanes]

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return inputs * kLanes; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const {
    float sum = 0.0F;
    for (std::size_t row = 0; row < outputs; ++row) {
      sum += weight[row * inputs + i / kLanes] * dy[row * kLanes + i % kLanes];
    }
    dx[i] = sum;
  }
};

// dx = dx * (1 - x^2) where x is the output of Tanh.
struct TanhGradient {
  std::size_t count;
  const float* x;
  float* dx;

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return count; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const { dx[i] *= 1.0F - x[i] * x[i]; }
};

// Each thread looks through all windows for its character, so that none has to add to what another
// one adds to.
struct EmbeddingGradient {
  std::size_t vocabulary;
  std::size_t context;
  std::size_t width;
  const std::uint8_t* tokens;  // [kLanes][context]
  const float* dinput;         // [context * width][kLanes]
  float* dembedding;           // [vocabulary][width]

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return vocabulary * width; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const {
    float sum = 0.0F;
    for (std::size_t s = 0; s < kLanes; ++s) {
      for (std::size_t c = 0; c < context; ++c) {
        if (tokens[s * context + c] == i / width) {
          sum += dinput[(c * width + i % width) * kLanes + s];
        }
      }
    }
    dembedding[i] = sum;
  }
};

// The mean of the gradients of all micro-batches, and one update of Adam with it (adam.h).
struct AdamUpdate {
  std::size_t count;
  std::size_t micro_batches;
  const float* gradients;  // [micro_batches][count]
  float beta1;
  float beta2;
  float epsilon;
  float rate;  // both of AdamRates
  float correction2;
  float* parameters;
  float* exp_avg;
  float* exp_avg_sq;

  CHAR_LM_ON_BOTH std::size_t ThreadCount() const { return count; }
  CHAR_LM_ON_BOTH void Run(std::size_t i) const {
    float sum = gradients[i];
    for (std::size_t m = 1; m < micro_batches; ++m) {
      sum += gradients[m * count + i];
    }
    const float g = sum * (1.0F / static_cast<float>(micro_batches * kLanes));
    exp_avg[i] = beta1 * exp_avg[i] + (1.0F - beta1) * g;
    exp_avg_sq[i] = beta2 * exp_avg_sq[i] + (1.0F - beta2) * g * g;
    parameters[i] -= rate * exp_avg[i] / (sqrtf(exp_avg_sq[i] / correction2) + epsilon);
  }
};

// The name of a job's kernel in the image.
#define CHAR_LM_KERNEL_NAME(Job) \
  inline const char* KernelName(const Job& /*job*/) { return "char_lm_" #Job; }
CHAR_LM_JOBS(CHAR_LM_KERNEL_NAME)
#undef CHAR_LM_KERNEL_NAME

}  // namespace char_lm::jobs
