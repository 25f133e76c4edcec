// SPDX-License-Identifier: Apache-2.0
// StepElement as a kernel. Found by name in the loaded image.
#include "tests/cuda/step_job.h"

extern "C" __global__ void sealpoint_test_step(const sealpoint::testing::StepJob job) {
  const std::uint64_t thread = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread < job.count) StepElement(job, thread);
}
