// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_REQUESTED_BYTES_H_
#define SEALPOINT_READERS_COLLECTIVE_REQUESTED_BYTES_H_

#include <cstdint>
#include <vector>

#include "readers/collective/reading_order.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// What all ranks of a load request together.
struct RequestedBytes {
  std::uint64_t size_bytes = 0;     // each byte that any rank requests counts once
  std::vector<BlobBytes> shared{};  // a UnionOf: what two ranks or more request
};

// Of the ranges of all ranks, one after the other. Those of one rank do not overlap.
RequestedBytes JoinRanges(std::vector<BlobBytes> ranges);

// The requests of all ranks, of which each gives its plan. Those of a blob are joined at rank (blob
// mod size), then all ranks get the result; so no rank ever holds the ranges of all ranks before
// they are joined. Collective. Errors: Comm, Timeout.
Result<RequestedBytes> JoinRequests(Communicator& comm, const ReadPlanData& plan);

// The ranges of a plan, cut where chunks that other ranks need as well begin and end.
struct DividedRanges {
  std::vector<PlanRange> alone;   // no other rank needs these
  std::vector<PlanRange> shared;  // in whole chunks
};
// `shared` is that of all ranks. Ranks request whole chunks, so that it holds whole ones.
DividedRanges DivideRanges(const ReadPlanData& plan, const std::vector<BlobBytes>& shared);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_REQUESTED_BYTES_H_
