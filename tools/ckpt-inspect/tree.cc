// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/tree.h"

#include <algorithm>

namespace sealpoint::tools {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits off the front, without leading zeros.
std::string_view TakeNumber(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  std::string_view number = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(number.size());
  number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
  return number;
}

void Append(const TreeNode& node, std::size_t depth, std::optional<std::size_t> depth_max,
            std::vector<TreeLine>& lines) {
  if (depth_max && depth >= *depth_max) return;
  for (const auto& [name, child] : node.children) {
    std::string label = name;
    const TreeNode* end = &child;
    while (end->children.size() == 1 && !end->tensor) {
      label += "." + end->children.begin()->first;
      end = &end->children.begin()->second;
    }
    lines.push_back({.depth = depth, .label = label, .node = end});
    Append(*end, depth + 1, depth_max, lines);
  }
}

}  // namespace

bool NaturalLess::operator()(std::string_view a, std::string_view b) const {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view x = TakeNumber(a);
      const std::string_view y = TakeNumber(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    // As UTF-8 sorts: non-ASCII characters behind ASCII.
    const auto x = static_cast<unsigned char>(a.front());
    const auto y = static_cast<unsigned char>(b.front());
    if (x != y) return x < y;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "01" and "1" are different names
}

TreeNode BuildTree(const std::vector<TensorInfo>& tensors) {
  TreeNode root;
  for (const TensorInfo& tensor : tensors) {
    TreeNode* node = &root;
    const auto count = [&tensor](TreeNode& at) {
      ++at.tensor_count;
      at.bytes += tensor.raw_bytes;
      at.shard_count += tensor.shard_count;
    };
    count(root);
    for (std::string_view rest = tensor.name;;) {
      const std::size_t dot = rest.find('.');
      node = &node->children[std::string(rest.substr(0, dot))];
      count(*node);
      if (dot == std::string_view::npos) break;
      rest.remove_prefix(dot + 1);
    }
    node->tensor = tensor;
  }
  return root;
}

std::vector<TreeLine> FlattenTree(const TreeNode& root, std::optional<std::size_t> depth_max) {
  std::vector<TreeLine> lines;
  Append(root, 0, depth_max, lines);
  return lines;
}

}  // namespace sealpoint::tools
