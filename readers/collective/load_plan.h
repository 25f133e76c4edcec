// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_LOAD_PLAN_H_
#define SEALPOINT_READERS_COLLECTIVE_LOAD_PLAN_H_

#include "sealpoint/collective_reader.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Gathers on every rank what each rank would do, and the sums. Collective. Takes memory linear in
// the number of ranks, independent of the size of their requests. Errors: Comm, Timeout.
Result<CollectiveLoadPlan> GatherLoads(Communicator& comm, const RankLoad& local_load);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_LOAD_PLAN_H_
