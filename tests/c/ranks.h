// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_C_RANKS_H_
#define SEALPOINT_TESTS_C_RANKS_H_

#include "sealpoint.h"

// A communicator between threads of this process, written against sealpoint.h alone.
typedef struct group group;
group* group_create(int size);
void group_free(group* group);
// The table of a rank; the group must outlive it. `duplicates`: whether it offers duplicate.
sealpoint_communicator_table group_table(group* group, int rank, int duplicates);
// How many tables are not released yet, those of duplicates among them.
int group_open_count(const group* group);
// From now on all calls fail, with this message.
void group_break(group* group, const char* message);
// What the functions of a group do wrong.
enum {
  kTakesNothing = 1,  // calls receive nothing
  kTakesWrongly = 2,  // and from ranks that there are none of
  kDuplicateFails = 3,
  kDuplicateIsNot = 4,       // without interrupt
  kDuplicateIsAnother = 5,   // with a rank that it does not have
  kDuplicateProgresses = 6,  // no mistake: its function progress is called
  kReduceFails = 7,
  kDuplicateWaits = 8,  // for a progress that nobody makes
  kReduceSigned = 9,    // as MPI_MAX of MPI_UINT64_T does in MPICH 4.0
};
void group_misbehave(group* group, int how);
int group_progress_count(const group* group);
int64_t group_deadline_ms(const group* group);

#endif  // SEALPOINT_TESTS_C_RANKS_H_
