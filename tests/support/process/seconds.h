// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_PROCESS_SECONDS_H_
#define SEALPOINT_TESTS_SUPPORT_PROCESS_SECONDS_H_

#include <chrono>

namespace sealpoint::testing {

// How long `work` takes.
template <typename Work>
double SecondsOf(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_PROCESS_SECONDS_H_
