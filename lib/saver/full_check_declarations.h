// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_FULL_CHECK_DECLARATIONS_H_
#define SEALPOINT_LIB_SAVER_FULL_CHECK_DECLARATIONS_H_

#include <span>

#include "lib/saver/save_plan.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Collective. Proves before the first payload byte that the declarations of all ranks describe each
// tensor alike, that the ranks that hold a region are exactly those that its replica lists name,
// that the regions of each tensor tile it exactly, that the shards as they will be written stay
// within the limits of a box list if they form no grid, that each object has one holder, and that
// at least one holder is a rank that writes (SaverOptions::writer_ranks). The work is distributed:
// each rank sends what it declares of a name to rank hash(name) mod size, so nothing grows with
// ranks × tensors on one rank. `plan` is this rank's MakeSavePlan of the declaration. Every rank
// gets the same outcome. Errors: InvalidArgument (tensor, element, ranks), LimitExceeded (tensor),
// Comm, Timeout.
Status FullCheckDeclarations(Communicator& comm, const Declaration& declaration,
                             const SavePlan& plan, std::span<const int> writer_ranks,
                             const Limits& limits);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_FULL_CHECK_DECLARATIONS_H_
