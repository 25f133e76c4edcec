// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_STATE_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_STATE_H_

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "sealpoint/interop.h"

namespace sealpoint::internal::foreign {

// Position of a value in a state: keys of mappings, positions in lists.
using PathPart = std::variant<std::string, std::int64_t>;
using ValuePath = std::vector<PathPart>;
// "model.layers.0.weight".
std::string TextOf(const ValuePath& path);
// Abbreviated JSON of a node, for messages and lists.
std::string BriefOf(const ForeignNode& node);

// That each tensor of the tree is there, and no tensor has no place. Throws Corrupt.
void CheckTree(const ForeignCheckpoint& state);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_STATE_H_
