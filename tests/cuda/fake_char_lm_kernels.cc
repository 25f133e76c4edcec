// SPDX-License-Identifier: Apache-2.0
// The kernels of examples/train_char_lm, for the fake driver.
#include <algorithm>

#include "examples/train_char_lm/device_kernels.h"
#include "tests/support/device/fake_cuda_driver.h"

namespace {

// From the last thread to the first: nothing may depend on their order.
template <typename Job>
std::function<void()> OnHost(void** parameters, std::uint64_t thread_count) {
  const Job job = *static_cast<const Job*>(parameters[0]);
  return [job, thread_count] {
    for (std::size_t i = std::min<std::size_t>(thread_count, job.ThreadCount()); i-- > 0;) {
      job.Run(i);
    }
  };
}

#define CHAR_LM_ADD(Job)                      \
  [[maybe_unused]] const bool k##Job##Added = \
      sealpoint::testing::AddFakeKernel("char_lm_" #Job, OnHost<char_lm::jobs::Job>);
CHAR_LM_JOBS(CHAR_LM_ADD)
#undef CHAR_LM_ADD

}  // namespace
