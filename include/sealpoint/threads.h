// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_THREADS_H_
#define SEALPOINT_THREADS_H_

#include "sealpoint/export.h"

namespace sealpoint {

// Maximum value of thread options; a larger value is InvalidArgument, and so is a negative one.
// Each thread may hold a few MiB of memory from its start.
inline constexpr int kThreadsMax = 1024;

// Default of all thread options: the library chooses. The option states the number. Options of
// loads depend on the machine: the processors available to this process (its affinity mask),
// divided by the ranks that share the host; at most 16, and at most one per 4 MiB to read.
// Collective calls count these ranks; other calls use the number that the job's launcher sets in
// the environment (Open MPI, MPICH, Slurm, torchrun), or 1.
//
// The same option is 0 in C and None in Python.
inline constexpr int kThreadsAuto = 0;

}  // namespace sealpoint

#endif  // SEALPOINT_THREADS_H_
