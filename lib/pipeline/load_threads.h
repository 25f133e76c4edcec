// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_LOAD_THREADS_H_
#define SEALPOINT_LIB_PIPELINE_LOAD_THREADS_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "sealpoint/status.h"

namespace sealpoint::internal::pipeline {

// The number of threads for an option named `name`: `threads`, or, for kThreadsAuto, the number for
// reading this many bytes with `processes` processes sharing the processors. Errors:
// InvalidArgument.
Result<int> LoadThreads(std::string_view name, int threads, int processes,
                        std::uint64_t size_bytes);

// At least `threads`, which LoadThreads chose, for reading this many bytes without the page cache.
// Each thread reads or computes, so several keep storage and processors busy.
int DirectLoadThreads(int threads, std::uint64_t size_bytes);

// The processors that this process may run on. Equal for processes of a host that share them.
std::string ProcessorsText();

// Number of processes of this job on this host, according to the environment; 1 if unknown.
int ProcessesOfHost();

// Number of processes of this job that share this process's processors, according to the
// environment: 1 if unknown, or if the processes of this host are bound to separate processors.
int ProcessesByEnvironment();

}  // namespace sealpoint::internal::pipeline

#endif  // SEALPOINT_LIB_PIPELINE_LOAD_THREADS_H_
