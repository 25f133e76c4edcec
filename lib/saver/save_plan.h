// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_SAVE_PLAN_H_
#define SEALPOINT_LIB_SAVER_SAVE_PLAN_H_

#include <cstdint>
#include <span>
#include <vector>

#include "sealpoint/declaration.h"

namespace sealpoint::internal::saver {

// The part of a held region that this rank writes; it has the region's box.
struct PlannedShard {
  std::size_t slot = 0;  // in the declaration
  Run run{};
  // The number of a group of its own, which this rank chose (lib/saver/reuse.h); 0: of
  // the group that its tensor has.
  std::uint32_t learned = 0;
};

// Writes of one rank in a save.
struct SavePlan {
  std::vector<PlannedShard> shards{};      // by group, then tensor name, then region
  std::vector<std::size_t> empty_slots{};  // empty tensors that this rank declares
  std::uint64_t tensor_bytes = 0;
};

// How the regions of a replica group are divided among its ranks.
enum class Division : std::uint8_t {
  kEven,
  kFirstRank,  // replicas may differ: one rank writes all of them, so that no mixture is stored
};

// Local arithmetic, no exchange. This rank writes the regions that it alone holds, and its share of
// those that it shares with others. The regions of a replica group, in the order of group and name,
// are divided evenly by bytes among the writing ranks of the group (lib/layout/replicas.h), or left
// to the first of these. Every rank of the group must compute the same division, because it is not
// checked before the bytes are written. The order of the regions must therefore not depend on
// anything that differs between the ranks, such as the order of declaration. A rank that does not
// write has an empty plan. Errors: InvalidArgument (this rank is not in its own replica list, or a
// rank beyond `size`).
Result<SavePlan> MakeSavePlan(const Declaration& declaration, int rank, int size,
                              std::span<const int> writer_ranks,
                              Division division = Division::kEven);

// True if `rank` is one of `writer_ranks`, which ascend; an empty list means all ranks.
bool Writes(std::span<const int> writer_ranks, int rank);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_SAVE_PLAN_H_
