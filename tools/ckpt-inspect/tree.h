// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_INSPECT_TREE_H_
#define SEALPOINT_TOOLS_CKPT_INSPECT_TREE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/checkpoint.h"

namespace sealpoint::tools {

// Numbers in names count as numbers: "layers.2" comes before "layers.10". Else as UTF-8 sorts.
struct NaturalLess {
  bool operator()(std::string_view a, std::string_view b) const;
};

// One line of the printed tree.
struct TreeLine {
  std::size_t depth = 0;
  std::string label;                  // parts of a chain without branches are joined by dots
  std::optional<std::size_t> tensor;  // whose name ends here
  // Tensors whose names go on after a dot, without the one above.
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t below() const { return end - begin; }
};

// Tensors by the parts of their names between dots. Names ascend, so the tensors below a node have
// numbers that follow one another; the tree is made of these ranges as it is walked, and takes some
// 12 bytes for each tensor. Borrows the checkpoint.
class TensorTree {
 public:
  explicit TensorTree(const Checkpoint& checkpoint);

  // Calls `visit` for all lines, depth first, down to `depth_max` levels, until it fails.
  Status ForEachLine(std::optional<std::size_t> depth_max,
                     const std::function<Status(const TreeLine&)>& visit) const;

  // Sums over the tensors [begin, end).
  struct Sums {
    std::uint64_t bytes = 0;
    std::uint64_t shard_count = 0;
  };
  Sums SumsOf(std::size_t begin, std::size_t end) const;

 private:
  struct Child {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;  // equal to `begin`: the name of that tensor ends with this part
  };
  struct Walk;

  std::string_view PartOf(std::size_t tensor, std::size_t prefix_size) const;
  std::vector<Child> Children(std::size_t begin, std::size_t end, std::size_t prefix_size) const;
  TreeLine TakeLine(const std::vector<Child>& children, std::size_t& next,
                    std::size_t prefix_size) const;
  Status VisitBelow(const Walk& walk, std::size_t begin, std::size_t end, std::size_t prefix_size,
                    std::size_t depth) const;
  Sums SumsUpTo(std::size_t end) const;

  const Checkpoint& checkpoint_;
  std::vector<Sums> sums_;  // of the tensors before each kBlock-th
};

}  // namespace sealpoint::tools

#endif  // SEALPOINT_TOOLS_CKPT_INSPECT_TREE_H_
