// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_CHECK_DEADLINE_H_
#define SEALPOINT_LIB_BASE_CHECK_DEADLINE_H_

#include <chrono>
#include <string_view>

#include "lib/base/errors.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// InvalidArgument unless `deadline`, the value of the option `name`, is kForever or above zero.
inline Status CheckDeadline(std::string_view name, std::chrono::milliseconds deadline) {
  if (deadline == kForever || deadline.count() > 0) return {};
  return InvalidArgument(name, " is ", deadline.count(), " ms, expected more than 0, or kForever");
}

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_CHECK_DEADLINE_H_
