// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_FIND_REPLICAS_H_
#define SEALPOINT_LIB_SAVER_FIND_REPLICAS_H_

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/declaration.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// Items shared by one list of ranks, as positions in one rank's declaration, in the same order on
// all of these ranks: tensors by name and region, objects by name.
struct SharedItems {
  std::vector<std::size_t> slots{};
  std::vector<std::size_t> objects{};
};
// By holders: two or more, ascending.
using ItemsByHolders = std::map<std::vector<int>, SharedItems>;

using SharedObjects = std::map<std::vector<int>, std::vector<std::size_t>>;

// A declaration in which everything has its holders.
struct FoundReplicas {
  // Has the slots of the searched declaration. Of objects that several ranks hold, it has those
  // that this rank writes.
  Declaration declaration{};
  std::vector<std::size_t> objects{};  // its objects' numbers in the declaration that was searched
  SharedObjects shared_objects{};      // likewise, by holders: objects held by several ranks
};

// Finds the ranks that declare the same region of the same tensor; regions with declared replicas
// are left unchanged. For each object name declared by several ranks, it chooses one of these
// ranks, preferably one of `writer_ranks` (ascending; empty: all) (R-CMT-32).
//
// Collective: two exchanges, in which each rank sends a hash of each slot and object to the rank
// that owns the hash. Errors: Comm, Timeout.
Result<FoundReplicas> FindReplicas(Communicator& comm, const Declaration& held,
                                   std::span<const int> writer_ranks);

// The subset of memory that `found` needs, bound to the searched declaration. Borrows the memory
// and found.declaration.
Result<Sources> SelectSources(const FoundReplicas& found, const Sources& held);

// Items to compare: the replicas listed in `declaration`, and these objects.
ItemsByHolders FindSharedItems(const Declaration& declaration, SharedObjects shared_objects);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_FIND_REPLICAS_H_
