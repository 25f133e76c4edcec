// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_TREE_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_TREE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/checkpoint.h"

namespace sealpoint::tools {

// Numbers in names count as numbers: "layers.2" comes before "layers.10".
struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const;
};

// Tensors by the parts of their names between dots.
struct TreeNode {
  std::map<std::string, TreeNode, NaturalLess> children;
  std::optional<TensorInfo> tensor;  // whose name ends here
  // Of all tensors here and below.
  std::uint64_t tensor_count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t shard_count = 0;
};

TreeNode BuildTree(const std::vector<TensorInfo>& tensors);

// One line of the printed tree.
struct TreeLine {
  std::size_t depth = 0;
  std::string label;  // parts of a chain without branches are joined
  const TreeNode* node = nullptr;
};

// Depth first; down to `depth_max` levels, without it all.
std::vector<TreeLine> FlattenTree(const TreeNode& root, std::optional<std::size_t> depth_max);

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_TREE_H_
