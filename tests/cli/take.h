// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_CLI_TAKE_H_
#define SEALPOINT_TESTS_CLI_TAKE_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sealpoint/status.h"

// For programs that make what the tools are tested on: an error ends them with status 1.

inline void Check(const sealpoint::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(1);
}

template <typename T>
T Take(sealpoint::Result<T> result) {
  Check(result.status());
  return std::move(result).value();
}

#endif  // SEALPOINT_TESTS_CLI_TAKE_H_
