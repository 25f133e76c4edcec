// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_NODE_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_NODE_H_

#include <optional>
#include <string>
#include <string_view>

#include "sealpoint/interop.h"

// Nodes of spec/tree.md.

namespace sealpoint::internal::foreign {

// Key that marks a node as other than a plain mapping; its value is the kind.
inline constexpr const char* kNodeKind = "$";

// "" if the node is a plain mapping or not an object; "?" if its kind is not a text.
std::string KindOf(const ForeignNode& node);
// The node of a tensor.
ForeignNode TensorNode(const std::string& name);
// An item of a node "dict".
ForeignNode PairNode(ForeignNode key, ForeignNode value);
// The node of a mapping with these keys, in order.
ForeignNode MappingNode(ForeignNode::Members entries);
// As Python's json.dumps, with sorted keys or not.
std::string PythonJson(const ForeignNode& value, bool is_sorted = false);
// Empty if the text is not JSON, or nested beyond 200 levels. Duplicate keys are refused.
std::optional<ForeignNode> ParseNode(std::string_view text);

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_NODE_H_
