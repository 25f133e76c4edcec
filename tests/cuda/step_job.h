// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CUDA_STEP_JOB_H_
#define SEALPOINT_TESTS_CUDA_STEP_JOB_H_

#include <cstdint>

#include "lib/device/xxh3_blocks.h"

namespace sealpoint::testing {

// A step of a training, of which each element depends on all steps before. Plain C++17 for the host
// and for nvcc, with the same bits: the product is exact, so that fusing it with the sum changes
// nothing. Number `step` is 1, 2, …
struct StepJob {
  float* state;  // in device memory
  std::uint64_t count;
  std::uint64_t step;
};

SEALPOINT_ON_BOTH void StepElement(const StepJob& job, std::uint64_t i) {
  job.state[i] = job.state[i] * 0.5F + static_cast<float>((i + job.step * 7919) % 4093);
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_CUDA_STEP_JOB_H_
