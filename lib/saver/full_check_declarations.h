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

#endif  // SEALPOINT_LIB_SAVER_FULL_CHECK_DECLARATIONS_H_
