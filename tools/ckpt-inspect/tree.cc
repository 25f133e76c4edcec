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

// Sums are kept for each block; within one they are added up again.
constexpr std::size_t kBlock = 8;

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
    // As UTF-8 sorts: non-ASCII characters after ASCII.
    const auto x = static_cast<unsigned char>(a.front());
    const auto y = static_cast<unsigned char>(b.front());
    if (x != y) return x < y;
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;  // "01" and "1" are different names
}

struct TensorTree::Walk {
  std::optional<std::size_t> depth_max;
  const std::function<Status(const TreeLine&)>& visit;
};

TensorTree::TensorTree(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {
  Sums sums;
  for (std::size_t i = 0; i < checkpoint.tensor_count(); ++i) {
    if (i % kBlock == 0) sums_.push_back(sums);
    const TensorInfo tensor = checkpoint.tensor(i);
    sums.bytes += tensor.raw_bytes;
    sums.shard_count += tensor.shard_count;
  }
  sums_.push_back(sums);
}

TensorTree::Sums TensorTree::SumsUpTo(std::size_t end) const {
  if (end == checkpoint_.tensor_count()) return sums_.back();
  Sums sums = sums_[end / kBlock];
  for (std::size_t i = end / kBlock * kBlock; i < end; ++i) {
    const TensorInfo tensor = checkpoint_.tensor(i);
    sums.bytes += tensor.raw_bytes;
    sums.shard_count += tensor.shard_count;
  }
  return sums;
}

TensorTree::Sums TensorTree::SumsOf(std::size_t begin, std::size_t end) const {
  const Sums before = SumsUpTo(begin);
  const Sums all = SumsUpTo(end);
  return {.bytes = all.bytes - before.bytes, .shard_count = all.shard_count - before.shard_count};
}

// The part of the name after the prefix, up to the next dot.
std::string_view TensorTree::PartOf(std::size_t tensor, std::size_t prefix_size) const {
  const std::string_view rest = checkpoint_.tensor_name(tensor).substr(prefix_size);
  return rest.substr(0, rest.find('.'));
}

// The children of tensors [begin, end), whose names share a prefix that ends with a dot or is
// empty.
std::vector<TensorTree::Child> TensorTree::Children(std::size_t begin, std::size_t end,
                                                    std::size_t prefix_size) const {
  std::vector<Child> children;
  for (std::size_t i = begin; i < end;) {
    const std::string_view part = PartOf(i, prefix_size);
    const std::size_t size = prefix_size + part.size();
    const auto first = static_cast<std::uint32_t>(i);
    const bool ends_here = checkpoint_.tensor_name(i++).size() == size;
    if (!ends_here) {
      while (i < end && checkpoint_.tensor_name(i).size() > size &&
             PartOf(i, prefix_size) == part) {
        ++i;
      }
    }
    children.push_back({.begin = first, .end = ends_here ? first : static_cast<std::uint32_t>(i)});
  }
  // A tensor and what goes on after its name need not follow one another: "a", "a-b", "a.c".
  std::stable_sort(children.begin(), children.end(), [&](const Child& a, const Child& b) {
    return NaturalLess()(PartOf(a.begin, prefix_size), PartOf(b.begin, prefix_size));
  });
  return children;
}

// The line of the next child; a tensor and what goes on after its name are one.
TreeLine TensorTree::TakeLine(const std::vector<Child>& children, std::size_t& next,
                              std::size_t prefix_size) const {
  const std::string_view part = PartOf(children[next].begin, prefix_size);
  TreeLine line{.label = std::string(part)};
  for (; next < children.size() && PartOf(children[next].begin, prefix_size) == part; ++next) {
    const Child& child = children[next];
    if (child.begin == child.end) {
      line.tensor = child.begin;
    } else {
      line.begin = child.begin;
      line.end = child.end;
    }
  }
  return line;
}

Status TensorTree::VisitBelow(const Walk& walk, std::size_t begin, std::size_t end,
                              std::size_t prefix_size, std::size_t depth) const {
  if (walk.depth_max && depth >= *walk.depth_max) return {};
  const std::vector<Child> children = Children(begin, end, prefix_size);
  for (std::size_t next = 0; next < children.size();) {
    TreeLine line = TakeLine(children, next, prefix_size);
    while (!line.tensor) {
      const std::size_t size = prefix_size + line.label.size() + 1;
      const std::vector<Child> below = Children(line.begin, line.end, size);
      std::size_t used = 0;
      const TreeLine only = TakeLine(below, used, size);
      if (used < below.size()) break;
      line = {.label = line.label + "." + only.label,
              .tensor = only.tensor,
              .begin = only.begin,
              .end = only.end};
    }
    line.depth = depth;
    if (Status status = walk.visit(line); !status.ok()) return status;
    if (line.below() == 0) continue;
    Status status =
        VisitBelow(walk, line.begin, line.end, prefix_size + line.label.size() + 1, depth + 1);
    if (!status.ok()) return status;
  }
  return {};
}

Status TensorTree::ForEachLine(std::optional<std::size_t> depth_max,
                               const std::function<Status(const TreeLine&)>& visit) const {
  return VisitBelow({.depth_max = depth_max, .visit = visit}, 0, checkpoint_.tensor_count(), 0, 0);
}

}  // namespace sealpoint::tools
