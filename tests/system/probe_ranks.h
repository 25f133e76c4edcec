// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SYSTEM_PROBE_RANKS_H_
#define SEALPOINT_TESTS_SYSTEM_PROBE_RANKS_H_

#include <functional>
#include <memory>

#include "sealpoint/communicator.h"

namespace sealpoint::testing {

// Runs `body`, whose result is the exit status, on this rank: the only one, or one of those that
// mpirun started. There are two definitions, one with MPI and one without.
int RunOnRank(int argc, char** argv, const std::function<int(Communicator&)>& body);

// For programs that end otherwise. EndRanks is MPI_Finalize, or nothing.
std::unique_ptr<Communicator> BeginRank(int argc, char** argv);
void EndRanks();

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SYSTEM_PROBE_RANKS_H_
