// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_BOX_LIST_SIZES_H_
#define SEALPOINT_LIB_SAVER_BOX_LIST_SIZES_H_

#include <cstdint>

#include "lib/saver/save_plan.h"
#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// The size of a box list of the shards of one tensor.
struct BoxListSize {
  std::uint64_t shard_count = 0;
  std::uint64_t corner_count = 0;  // of the shards and of the tensor
};

bool FitsLimits(const BoxListSize& size, const Limits& limits);

// The most that this rank contributes to any one tensor; known without a plan.
BoxListSize LargestShareOf(const Declaration& declaration);

// Collective. Checks whether the planned shards of each tensor, over all ranks, are few enough for
// a box list. A tensor with more shards may still be a grid, which has no such limit. Each rank
// sends three numbers for each tensor that it writes to rank hash(name) mod size. Every rank gets
// the same outcome. Errors: Comm, Timeout.
Result<bool> AllFitBoxLists(Communicator& comm, const Declaration& declaration,
                            const SavePlan& plan, const Limits& limits);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_BOX_LIST_SIZES_H_
