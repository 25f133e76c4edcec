// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_BENCHMARKS_COMMON_MPI_MAIN_H_
#define SEALPOINT_BENCHMARKS_COMMON_MPI_MAIN_H_

#include <mpi.h>

#include <string>

#include "benchmarks/common/arguments.h"

namespace sealpoint::bench {

// The main function of a benchmark that runs under mpirun: declare(arguments) names its options,
// run() returns its exit status.
template <typename Declare, typename Run>
int MpiMain(int argc, char** argv, const std::string& description, const Declare& declare,
            const Run& run) {
  MPI_Init(&argc, &argv);
  Arguments arguments(description);
  declare(arguments);
  const auto ended = arguments.Parse(argc, argv);
  const int status = ended ? *ended : run();
  MPI_Finalize();
  return status;
}

}  // namespace sealpoint::bench

#endif  // SEALPOINT_BENCHMARKS_COMMON_MPI_MAIN_H_
