// SPDX-License-Identifier: Apache-2.0
// The jobs of device_kernels.h as kernels. Found by name in the loaded image.
#include "device_kernels.h"

#define CHAR_LM_KERNEL(Job)                                                                     \
  extern "C" __global__ void char_lm_##Job(const char_lm::jobs::Job job) {                      \
    const std::size_t thread = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; \
    if (thread < job.ThreadCount()) {                                                           \
      job.Run(thread);                                                                          \
    }                                                                                           \
  }
CHAR_LM_JOBS(CHAR_LM_KERNEL)
