// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_REQUESTED_BYTES_H_
#define SEALPOINT_READERS_COLLECTIVE_REQUESTED_BYTES_H_

#include <vector>

#include "readers/collective/assign_readers.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// Combines the requests of all ranks; each passes its plan. Requests for a blob are joined and
// assigned to readers at rank (blob mod size), then all ranks get the result, so that no rank holds
// the separate ranges of all ranks. Collective. Errors: Comm, Timeout.
Result<RequestedBytes> JoinRequests(Communicator& comm, const load::ReadPlanData& plan);

// The ranges of a plan, cut where chunks that other ranks need as well begin and end.
struct DividedRanges {
  std::vector<transfer::PlanRange> alone;   // no other rank needs these
  std::vector<transfer::PlanRange> shared;  // in whole chunks
};
// `shared` is that of all ranks. Ranks request whole chunks, so that it holds whole ones.
DividedRanges DivideRanges(const load::ReadPlanData& plan, const std::vector<ReaderBytes>& shared);

// The range of `count` chunks of `range`, which the chunk with number `first` in the plan begins.
transfer::PlanRange PartOf(const load::ReadPlanData& plan, const transfer::PlanRange& range,
                           std::size_t first, std::size_t count);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_REQUESTED_BYTES_H_
