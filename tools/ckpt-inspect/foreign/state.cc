// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt-inspect/foreign/state.h"

#include <algorithm>
#include <set>
#include <utility>

#include "tools/ckpt-inspect/foreign/budget.h"
#include "tools/ckpt-inspect/foreign/bytes.h"
#include "tools/ckpt-inspect/foreign/failure.h"

namespace sealpoint::tools {
namespace {

constexpr const char* kKind = "$";
constexpr std::size_t kBriefMax = 60;
constexpr std::uint64_t kValueCost = 256;  // of one that is listed, in bytes

// "" if the node is no object, or a plain mapping.
std::string KindOf(const Json& node) {
  if (!node.is_object() || !node.contains(kKind)) return "";
  return node[kKind].is_string() ? node[kKind].get<std::string>() : "?";
}

// A key of a mapping as Python's str() has it, or as its repr().
std::string KeyText(const Json& key, bool is_quoted) {
  if (key.is_string()) {
    const auto text = key.get<std::string>();
    return is_quoted ? QuotedText(text) : text;
  }
  if (key.is_boolean()) return key.get<bool>() ? "True" : "False";
  if (key.is_null()) return "None";
  if (key.is_number_float()) return FloatText(key.get<double>());
  if (key.is_number()) return key.dump();
  const std::string kind = KindOf(key);
  if (kind == "int" || kind == "float") return key.at("value").get<std::string>();
  if (kind == "tuple") {
    std::string text = "(";
    const Json& items = key.at("items");
    for (const Json& item : items) text += (text.size() > 1 ? ", " : "") + KeyText(item, true);
    return text + (items.size() == 1 ? ",)" : ")");
  }
  return "<" + kind + " " + key.value("name", "") + ">";
}

using Children = std::vector<std::pair<PathPart, const Json*>>;

PathPart PartOf(const Json& key) {
  if (key.is_number_integer()) return key.get<std::int64_t>();
  return KeyText(key, false);
}

// Of a mapping; nothing of other nodes.
std::optional<Children> EntriesOf(const Json& node) {
  if (!node.is_object()) return std::nullopt;
  Children children;
  if (!node.contains(kKind)) {
    for (const auto& [key, value] : node.items()) children.emplace_back(key, &value);
    return children;
  }
  if (KindOf(node) != "dict") return std::nullopt;
  for (const Json& item : node.at("items")) {
    children.emplace_back(PartOf(item.at(0)), &item.at(1));
  }
  return children;
}

// Whether a list has more than plain values, or a node is a mapping.
bool IsWalked(const Json& node) {
  if (node.is_array()) {
    return std::ranges::any_of(
        node, [](const Json& one) { return KindOf(one) == "tensor" || IsWalked(one); });
  }
  return node.is_object() && (!node.contains(kKind) || KindOf(node) == "dict");
}

std::optional<Children> ChildrenOf(const Json& node) {
  if (!IsWalked(node)) return std::nullopt;
  if (!node.is_array()) return EntriesOf(node);
  Children children;
  for (const Json& one : node) {
    children.emplace_back(static_cast<std::int64_t>(children.size()), &one);
  }
  return children;
}

// What makes the first characters of a value's text: a whole one could be as long as the file.
Json Clipped(const Json& node, std::size_t& left) {
  if (left > 0) --left;
  if (node.is_string()) {
    const std::string& text = node.get_ref<const std::string&>();
    std::size_t end = 0;
    for (std::size_t count = 0; end < text.size() && count <= kBriefMax; ++count) {
      for (++end; end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80;) {
        ++end;
      }
    }
    return text.substr(0, end);
  }
  if (!node.is_structured()) return node;
  Json clipped = node.is_array() ? Json::array() : Json::object();
  for (const auto& [key, child] : node.items()) {
    if (left == 0) break;
    if (node.is_array()) {
      clipped.push_back(Clipped(child, left));
    } else {
      clipped[key] = Clipped(child, left);
    }
  }
  return clipped;
}

void AddValues(const Json& node, ValuePath& path, Budget& names, const std::string& where,
               std::vector<ForeignValue>& values) {
  const auto children = ChildrenOf(node);
  if (!children) {
    if (KindOf(node) == "tensor") return;
    std::size_t left = kBriefMax + 1;
    std::string brief = PythonJson(Clipped(node, left));
    if (brief.size() > kBriefMax) brief = brief.substr(0, kBriefMax - 3) + "...";
    values.push_back({TextOf(path), std::move(brief)});
    names.Add(kValueCost + values.back().name.size(), where);
    return;
  }
  for (const auto& [part, child] : *children) {
    path.push_back(part);
    AddValues(*child, path, names, where, values);
    path.pop_back();
  }
}

void FindTensors(const Json& node, std::set<std::string>& named) {
  if (KindOf(node) == "tensor") {
    named.insert(node.at("name").get<std::string>());
    return;
  }
  if (!node.is_structured()) return;
  for (const Json& child : node) FindTensors(child, named);
}

std::string Text(const Json& text) {
  return text.dump(-1, ' ', true, Json::error_handler_t::replace);
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

std::vector<ForeignValue> ValuesOf(const ForeignState& state) {
  try {
    if (!EntriesOf(state.tree)) {
      Fail(Code::kCorrupt, state.path, "the tree is no mapping");
    }
    std::set<std::string> named;
    FindTensors(state.tree, named);
    for (const std::string& name : named) {
      if (state.tensors.contains(name)) continue;
      throw Failure{Status(Code::kCorrupt, "the tree names a tensor that is not there")
                        .AtPath(state.path)
                        .AtTensor(name)};
    }
    for (const auto& [name, tensor] : state.tensors) {
      if (named.contains(name)) continue;
      throw Failure{
          Status(Code::kCorrupt, "the tree has no place for it").AtPath(state.path).AtTensor(name)};
    }
    std::vector<ForeignValue> values;
    ValuePath path;
    std::uint64_t stored = 0;
    for (const ForeignFile& file : state.files) stored = CappedAdd(stored, file.size_bytes);
    Budget names;
    names.Allow(stored);
    AddValues(state.tree, path, names, state.path, values);
    return values;
  } catch (const Json::exception& error) {
    Fail(Code::kCorrupt, state.path, "the tree has a malformed node: {}", error.what());
  }
}

Json TensorNode(const std::string& name) { return {{kKind, "tensor"}, {"name", name}}; }

Json MappingNode(std::vector<std::pair<std::string, Json>> entries) {
  const bool has_kind = std::ranges::any_of(
      entries, [](const std::pair<std::string, Json>& entry) { return entry.first == kKind; });
  if (!has_kind) {
    Json::object_t plain;
    for (auto& [key, value] : entries) plain.emplace_back(std::move(key), std::move(value));
    return plain;
  }
  Json items = Json::array();
  for (auto& [key, value] : entries) items.push_back(Json::array({key, std::move(value)}));
  return {{kKind, "dict"}, {"items", std::move(items)}};
}

std::string PythonJson(const Json& value, bool is_sorted) {
  if (value.is_number_float()) return FloatText(value.get<double>());
  if (!value.is_structured()) return Text(value);
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const Json& one : value) parts.push_back(PythonJson(one, is_sorted));
  } else {
    std::vector<std::pair<std::string, const Json*>> members;
    for (const auto& [key, one] : value.items()) members.emplace_back(key, &one);
    if (is_sorted) std::ranges::sort(members);
    for (const auto& [key, one] : members) {
      parts.push_back(Text(key) + ": " + PythonJson(*one, is_sorted));
    }
  }
  return fmt::format("{}{}{}", value.is_array() ? '[' : '{', fmt::join(parts, ", "),
                     value.is_array() ? ']' : '}');
}

}  // namespace sealpoint::tools
