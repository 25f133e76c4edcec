// SPDX-License-Identifier: Apache-2.0
// The kernel of step_kernel.cu, for the fake driver.
#include <algorithm>

#include "tests/cuda/step_job.h"
#include "tests/support/device/fake_cuda_driver.h"

namespace sealpoint::testing {
namespace {

std::function<void()> StepOnHost(void** parameters, std::uint64_t thread_count) {
  const StepJob job = *static_cast<const StepJob*>(parameters[0]);
  return [=] {
    for (std::uint64_t i = 0; i < std::min(thread_count, job.count); ++i) StepElement(job, i);
  };
}

[[maybe_unused]] const bool kIsAdded = AddFakeKernel("sealpoint_test_step", StepOnHost);

}  // namespace
}  // namespace sealpoint::testing
