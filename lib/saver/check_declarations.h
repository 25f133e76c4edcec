// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_CHECK_DECLARATIONS_H_
#define SEALPOINT_LIB_SAVER_CHECK_DECLARATIONS_H_

#include <span>

#include "lib/saver/save_plan.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Collective. Checks whether the declarations of all ranks fit together, without exchanging them
// (spec/decisions/0012). Each rank hashes its regions into one sum (lib/layout/tiling_sum.h); the
// total of all sums is zero if the regions tile every tensor exactly. The sum cannot detect two
// tensors with one name. Each rank therefore also sends one hash per tensor with a first element on
// this rank to the owner of the name, rank hash(name) mod size; no name may occur twice there.
//
// The result true is wrong with a probability below 2^-110, and the committer proves exact tiling
// again for the written regions. The result false means that the declarations do not fit or that
// this check cannot decide, for example for a tensor with more shards than a box list may have
// (lib/saver/box_list_sizes.h); FullCheckDeclarations then decides and names the fault. `plan` is
// this rank's MakeSavePlan of the declaration. Every rank gets the same outcome. Errors:
// LimitExceeded (more tensors, objects or shards than an index may have, R-IDX-04), Comm, Timeout.
Result<bool> FastCheckDeclarations(Communicator& comm, const Declaration& declaration,
                                   const SavePlan& plan, std::span<const int> writer_ranks,
                                   const Limits& limits);

// Collective. Proves the following before the first payload byte. All ranks describe each tensor
// alike. The ranks that hold a region are exactly those in its replica lists. The regions of each
// tensor tile it exactly. The shards as they will be written stay within the limits of a box list
// if they form no grid. Each object has one holder. At least one holder is a rank that writes
// (SaverOptions::writer_ranks).
//
// The work is distributed: each rank sends its declarations of a name to rank hash(name) mod size,
// so no rank's load grows with ranks × tensors. `plan` is this rank's MakeSavePlan of the
// declaration. Every rank gets the same outcome. Errors: InvalidArgument (tensor, element, ranks),
// LimitExceeded (tensor), Comm, Timeout.
Status FullCheckDeclarations(Communicator& comm, const Declaration& declaration,
                             const SavePlan& plan, std::span<const int> writer_ranks,
                             const Limits& limits);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_CHECK_DECLARATIONS_H_
