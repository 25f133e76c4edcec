// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_FAST_CHECK_DECLARATIONS_H_
#define SEALPOINT_LIB_SAVER_FAST_CHECK_DECLARATIONS_H_

#include <span>

#include "lib/saver/save_plan.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Collective. Whether the declarations of all ranks fit together, found without exchanging them
// (spec/decisions/0012). Each rank hashes what it holds into one sum (lib/layout/tiling_sum.h), and
// all sums together are zero if the regions tile every tensor exactly. The sum cannot see two
// tensors with one name, so each rank also sends one hash per tensor of which it holds the first
// element to the owner of the name, rank hash(name) mod size, where no name may occur twice.
//
// True is wrong with a probability below 2^-110, and the committer proves exact tiling again for
// what was written. False means: they do not fit, or this check cannot decide, as for a tensor with
// more shards than a box list may have (lib/saver/box_list_sizes.h); FullCheckDeclarations then
// decides and names the fault. `plan` is this rank's MakeSavePlan of the declaration. Every rank
// gets the same outcome. Errors: LimitExceeded (more tensors, objects or shards than an index may
// have, R-IDX-04), Comm, Timeout.
Result<bool> FastCheckDeclarations(Communicator& comm, const Declaration& declaration,
                                   const SavePlan& plan, std::span<const int> writer_ranks,
                                   const Limits& limits);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_FAST_CHECK_DECLARATIONS_H_
