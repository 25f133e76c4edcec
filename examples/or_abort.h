// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_EXAMPLES_OR_ABORT_H_
#define SEALPOINT_EXAMPLES_OR_ABORT_H_

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sealpoint/status.h"

// Returns the value, or ends all ranks. For an error that one rank may have alone, outside a
// collective call: the other ranks would wait for it forever.
template <typename T>
T OrAbort(sealpoint::Result<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

#endif  // SEALPOINT_EXAMPLES_OR_ABORT_H_
