// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_THREADS_H_
#define SEALPOINT_THREADS_H_

#include "sealpoint/export.h"

namespace sealpoint {

// The greatest number of threads that an option may ask for; more is InvalidArgument, and so is
// less than one. Each may hold memory of some MiB from its start on.
inline constexpr int kThreadsMax = 1024;

}  // namespace sealpoint

#endif  // SEALPOINT_THREADS_H_
