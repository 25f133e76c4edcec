// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/state.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <utility>

#include "lib/interop/foreign/budget.h"
#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/node.h"

namespace sealpoint::internal::foreign {
namespace {

constexpr std::size_t kBriefMax = 60;
constexpr std::uint64_t kValueCost = 256;  // of one that is listed, in bytes

const ForeignNode& MemberOf(const ForeignNode& node, std::string_view key) {
  const ForeignNode* const member = node.Find(key);
  if (member == nullptr) throw std::invalid_argument(StrCat("it has no ", key));
  return *member;
}

const std::string& TextMember(const ForeignNode& node, std::string_view key) {
  const std::string* const text = MemberOf(node, key).if_text();
  if (text == nullptr) throw std::invalid_argument(StrCat(key, " is not a text"));
  return *text;
}

const ForeignNode::List& ListMember(const ForeignNode& node, std::string_view key) {
  const ForeignNode::List* const items = MemberOf(node, key).if_list();
  if (items == nullptr) throw std::invalid_argument(StrCat(key, " is not an array"));
  return *items;
}

// A key of a mapping as Python's str() has it, or as its repr().
std::string KeyText(const ForeignNode& key, bool is_quoted) {
  if (key.if_text() != nullptr) return is_quoted ? QuotedText(*key.if_text()) : *key.if_text();
  if (key.if_bool() != nullptr) return *key.if_bool() ? "True" : "False";
  if (key.is_null()) return "None";
  if (key.if_float() != nullptr) return FloatText(*key.if_float());
  if (key.if_int() != nullptr) return std::to_string(*key.if_int());
  const std::string kind = KindOf(key);
  if (kind == "int" || kind == "float") return TextMember(key, "value");
  if (kind == "tuple") {
    std::string text = "(";
    const ForeignNode::List& items = ListMember(key, "items");
    for (const ForeignNode& item : items) {
      text += (text.size() > 1 ? ", " : "") + KeyText(item, true);
    }
    return text + (items.size() == 1 ? ",)" : ")");
  }
  const ForeignNode* const name = key.Find("name");
  const bool has_name = name != nullptr && name->if_text() != nullptr;
  return StrCat("<", kind, " ", has_name ? std::string_view(*name->if_text()) : "", ">");
}

using Children = std::vector<std::pair<PathPart, const ForeignNode*>>;

PathPart PartOf(const ForeignNode& key) {
  if (key.if_int() != nullptr) return *key.if_int();
  return KeyText(key, false);
}

// The entries of a mapping; nothing if the node is another one.
std::optional<Children> EntriesOf(const ForeignNode& node) {
  if (node.if_object() == nullptr) return std::nullopt;
  Children children;
  const std::string kind = KindOf(node);
  if (kind.empty()) {
    for (const auto& [key, value] : *node.if_object()) children.emplace_back(key, &value);
    return children;
  }
  if (kind != "dict") return std::nullopt;
  for (const ForeignNode& item : ListMember(node, "items")) {
    if (item.if_list() == nullptr || item.if_list()->size() != 2) {
      throw std::invalid_argument("an item is not a key and a value");
    }
    children.emplace_back(PartOf(item.if_list()->front()), &item.if_list()->back());
  }
  return children;
}

// Whether a list has more than plain values, or a node is a mapping.
bool IsWalked(const ForeignNode& node) {
  if (node.if_list() != nullptr) {
    return std::ranges::any_of(*node.if_list(), [](const ForeignNode& one) {
      return KindOf(one) == "tensor" || IsWalked(one);
    });
  }
  if (node.if_object() == nullptr) return false;
  const std::string kind = KindOf(node);
  return kind.empty() || kind == "dict";
}

std::optional<Children> ChildrenOf(const ForeignNode& node) {
  if (!IsWalked(node)) return std::nullopt;
  if (node.if_list() == nullptr) return EntriesOf(node);
  Children children;
  for (const ForeignNode& item : *node.if_list()) {
    children.emplace_back(static_cast<std::int64_t>(children.size()), &item);
  }
  return children;
}

// The beginning of a text, longer than a brief value.
std::string Beginning(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t count = 0; end < text.size() && count <= kBriefMax; ++count) {
    for (++end; end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;) {
      ++end;
    }
  }
  return text.substr(0, end);
}

// What makes the first characters of a value's text: a whole one could be as long as the file.
ForeignNode Clipped(const ForeignNode& node, std::size_t& left) {
  if (left > 0) --left;
  if (node.if_text() != nullptr) return Beginning(*node.if_text());
  if (node.if_bool() != nullptr) return *node.if_bool();
  if (node.if_int() != nullptr) return *node.if_int();
  if (node.if_float() != nullptr) return *node.if_float();
  if (node.if_list() != nullptr) {
    ForeignNode::List items;
    for (const ForeignNode& item : *node.if_list()) {
      if (left == 0) break;
      items.push_back(Clipped(item, left));
    }
    return items;
  }
  if (node.if_object() == nullptr) return nullptr;
  ForeignNode::Members members;
  for (const auto& [key, value] : *node.if_object()) {
    if (left == 0) break;
    members.push_back({key, Clipped(value, left)});
  }
  return members;
}

void AddValues(const ForeignNode& node, ValuePath& path, Budget& names, const std::string& where,
               std::vector<ForeignValue>& values) {
  const auto children = ChildrenOf(node);
  if (!children) {
    if (KindOf(node) == "tensor" || node.if_unread() != nullptr) return;
    values.push_back({TextOf(path), BriefOf(node)});
    names.Add(kValueCost + values.back().name.size(), where);
    return;
  }
  for (const auto& [part, child] : *children) {
    path.push_back(part);
    AddValues(*child, path, names, where, values);
    path.pop_back();
  }
}

void FindTensors(const ForeignNode& node, std::set<std::string>& named) {
  if (KindOf(node) == "tensor") {
    named.insert(TextMember(node, "name"));
  } else if (node.if_list() != nullptr) {
    for (const ForeignNode& child : *node.if_list()) FindTensors(child, named);
  } else if (node.if_object() != nullptr) {
    for (const auto& [key, child] : *node.if_object()) FindTensors(child, named);
  }
}

template <typename Walk>
void WithMalformed(const ForeignCheckpoint& state, const Walk& walk) {
  try {
    walk();
  } catch (const std::invalid_argument& error) {
    Fail(Code::kCorrupt, state.path, "the tree has a malformed node: ", error.what());
  }
}

}  // namespace

std::string TextOf(const ValuePath& path) {
  std::string text;
  for (const PathPart& part : path) {
    if (&part != &path.front()) text += '.';
    const auto* const key = std::get_if<std::string>(&part);
    text += key != nullptr ? *key : std::to_string(std::get<std::int64_t>(part));
  }
  return text;
}

std::string BriefOf(const ForeignNode& node) {
  std::size_t left = kBriefMax + 1;
  std::string brief = PythonJson(Clipped(node, left));
  return brief.size() > kBriefMax ? brief.substr(0, kBriefMax - 3) + "..." : brief;
}

void CheckTree(const ForeignCheckpoint& state) {
  WithMalformed(state, [&] {
    if (!EntriesOf(state.tree)) {
      Fail(Code::kCorrupt, state.path, "the tree is ", BriefOf(state.tree), ", expected a mapping");
    }
    std::set<std::string> named;
    FindTensors(state.tree, named);
    for (const ForeignNode& values : state.rank_values) FindTensors(values, named);
    for (const std::string& name : named) {
      if (state.tensors.contains(name)) continue;
      FailAt(Code::kCorrupt, state.path, name, "the tree names a missing tensor");
    }
    for (const auto& [name, tensor] : state.tensors) {
      if (named.contains(name)) continue;
      FailAt(Code::kCorrupt, state.path, name, "the tree has no place for it");
    }
  });
}

}  // namespace sealpoint::internal::foreign

namespace sealpoint {

Result<std::vector<ForeignValue>> ForeignValues(const ForeignCheckpoint& checkpoint) {
  namespace foreign = internal::foreign;
  try {
    std::vector<ForeignValue> values;
    foreign::ValuePath path;
    foreign::Budget names(checkpoint.metadata_memory_bytes);
    foreign::WithMalformed(checkpoint, [&] {
      foreign::AddValues(checkpoint.tree, path, names, checkpoint.path, values);
    });
    return values;
  } catch (foreign::Failure& failure) {
    return std::move(failure.status);
  }
}

}  // namespace sealpoint
