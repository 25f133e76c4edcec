// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_CONTRACT_H_
#define SEALPOINT_READERS_LOAD_CONTRACT_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "lib/format/contents.h"
#include "readers/load/plan_builder.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// An item that is stored and passed the contract.
struct ResolvedItem {
  std::size_t tensor = 0;                  // in the index
  std::optional<Destination> destination;  // nothing where there is nothing to read
};

struct ResolvedRequest {
  std::vector<ResolvedItem> items;
  std::vector<LoadFinding> findings;
};

// Compares the request with what is stored. Errors: Mismatch (a difference that the contract
// forbids; the message counts the others of its kind), InvalidArgument (region, destination).
Result<ResolvedRequest> ResolveRequest(const Contents& index, const ReadRequest& request,
                                       const LoadContract& contract);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_CONTRACT_H_
