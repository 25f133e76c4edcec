// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_RANKS_WITH_RANKS_H_
#define SEALPOINT_TESTS_SUPPORT_RANKS_WITH_RANKS_H_

#include <functional>
#include <vector>

#include "sealpoint/communicator.h"

// Runs the same test on threads or on MPI: link with_ranks_threads.cc and GTest's main, or
// mpi_with_ranks.cc and mpi_main.cc. All ranks of an MPI job must run the same tests.

namespace sealpoint::testing {

// The numbers of ranks to test with: some small ones on threads, the size of the job under MPI.
std::vector<int> RankCounts();

// Calls `body` once on each of `size` ranks with a new communicator, and returns when all have
// ended. The deadline is a minute, so that a test that goes wrong ends. EXPECT_ works in `body`;
// after an ASSERT_ the rank leaves and the others get errors. Under MPI the ranks of the job from
// `size` on wait; a job with fewer ranks skips the test.
void WithRanks(int size, const std::function<void(Communicator&)>& body);

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_RANKS_WITH_RANKS_H_
