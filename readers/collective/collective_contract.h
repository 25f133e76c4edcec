// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_CONTRACT_H_
#define SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_CONTRACT_H_

#include <vector>

#include "lib/metadata/metadata.h"
#include "readers/load/contract.h"
#include "sealpoint/communicator.h"
#include "sealpoint/read_plan.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// Checks the requests of all ranks together: stored tensors that no rank requests, and tensors that
// are requested only in part. Rank (i mod size) checks tensor i, so that no rank's load grows with
// ranks times tensors. Collective. `local_request` passed the rest of the contract on this rank;
// its findings are included. Returns the findings of all ranks, sorted and without duplicates.
// Errors, the same on all ranks: Mismatch (the forbidden difference of the first tensor, and the
// number of differences), Comm, Timeout.
Result<std::vector<LoadFinding>> CheckContractTogether(Communicator& comm,
                                                       const metadata::Metadata& index,
                                                       const load::ResolvedRequest& local_request,
                                                       const LoadContract& contract);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_COLLECTIVE_CONTRACT_H_
