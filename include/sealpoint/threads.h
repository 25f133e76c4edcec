// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_THREADS_H_
#define SEALPOINT_THREADS_H_

#include "sealpoint/export.h"

namespace sealpoint {

// The greatest number of threads that an option may ask for; more is InvalidArgument, and so is
// less than one, except for kThreadsAuto where an option names it. Each may hold memory of some MiB
// from its start on.
inline constexpr int kThreadsMax = 1024;

// As many threads as the processors that this process may use (its affinity mask), divided by the
// ranks of its host that share them; 16 at most, and no more than one for each 4 MiB that is read.
// A collective call counts those ranks; any other takes the number that the launcher of the job put
// into the environment (Open MPI, MPICH, Slurm, torchrun), or 1.
inline constexpr int kThreadsAuto = 0;

}  // namespace sealpoint

#endif  // SEALPOINT_THREADS_H_
