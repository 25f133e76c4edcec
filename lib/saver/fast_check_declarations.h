// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_FAST_CHECK_DECLARATIONS_H_
#define SEALPOINT_LIB_SAVER_FAST_CHECK_DECLARATIONS_H_

#include <span>

#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Collective. Whether the declarations of all ranks fit together as FullCheckDeclarations proves in
// detail, found without sending them: each rank adds up what it holds (lib/layout/tiling_sum.h) and
// sends one sum to all, and one name per tensor of which it holds the first element to rank
// hash(name) mod size, where no name may come twice. False: they do not, or it cannot be told so
// cheaply, as of a tensor that has too many shards unless it is a grid
// (lib/saver/box_list_sizes.h). True is wrong with a probability below 2^-110; the committer proves
// it of what was written. Every rank gets the same outcome. Errors: Comm, Timeout.
Result<bool> FastCheckDeclarations(Communicator& comm, const Declaration& declaration,
                                   std::span<const int> writer_ranks, const Limits& limits);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_FAST_CHECK_DECLARATIONS_H_
