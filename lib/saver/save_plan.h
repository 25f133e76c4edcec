// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_SAVE_PLAN_H_
#define SEALPOINT_LIB_SAVER_SAVE_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "sealpoint/declaration.h"

namespace sealpoint::internal {

// The part of a held region that this rank writes; it has the region's box.
struct PlannedPiece {
  std::size_t slot = 0;  // in the declaration
  Run run{};
};

// What one rank writes in a save.
struct SavePlan {
  std::vector<PlannedPiece> pieces{};      // by group, then tensor name, then region
  std::vector<std::size_t> empty_slots{};  // empty tensors that this rank declares
  std::uint64_t tensor_bytes = 0;
};

// Local arithmetic, no exchange: regions that this rank holds alone are its own; those of a replica
// group are divided evenly among those of its ranks that write (lib/layout/replicas.h), every rank
// of the group coming to the same division. A rank that does not write has an empty plan. Errors:
// InvalidArgument (this rank is not in its own replica list, or a rank beyond `size`).
Result<SavePlan> MakeSavePlan(const Declaration& declaration, int rank, int size,
                              std::span<const int> writer_ranks);

// Whether `rank` is one of these, which ascend; none means all.
bool Writes(std::span<const int> writer_ranks, int rank);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_SAVE_PLAN_H_
