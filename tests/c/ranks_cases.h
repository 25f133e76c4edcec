// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_C_RANKS_CASES_H_
#define SEALPOINT_TESTS_C_RANKS_CASES_H_

#include "check.h"
#include "sealpoint_ranks.h"

// Goes through the functions of sealpoint_ranks.h on one rank of `all`. The ranks but the last one
// are in `fewer`, too; it is NULL on the last. `directory` is empty and the same on all ranks.
void run_rank_cases(sealpoint_communicator* all, sealpoint_communicator* fewer, int rank, int size,
                    const char* directory);

#endif  // SEALPOINT_TESTS_C_RANKS_CASES_H_
