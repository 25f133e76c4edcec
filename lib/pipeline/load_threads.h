// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_LOAD_THREADS_H_
#define SEALPOINT_LIB_PIPELINE_LOAD_THREADS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/status.h"

namespace sealpoint::internal::pipeline {

// The threads that an option named `name` asks for: `threads`, or, for kThreadsAuto, as many as one
// of `processes` that share their processors uses for so many bytes. Errors: InvalidArgument.
Result<int> LoadThreads(std::string_view name, int threads, int processes,
                        std::uint64_t size_bytes);

// The processors that this process may run on. Equal for processes of a host that share them.
std::string ProcessorsText();

// How many processes of this job share the processors of this one, as far as the environment says
// so: 1 if it does not, or if the processes of this host are bound to processors of their own.
int ProcessesByEnvironment();

}  // namespace sealpoint::internal::pipeline

#endif  // SEALPOINT_LIB_PIPELINE_LOAD_THREADS_H_
