// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/node.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>

#include "lib/interop/foreign/bytes.h"
#include "lib/safetensors/json_reader.h"
#include "lib/safetensors/json_text.h"

namespace sealpoint {

ForeignNode::ForeignNode(List items) : value_(std::make_unique<List>(std::move(items))) {}
ForeignNode::ForeignNode(Members members) : value_(std::make_unique<Members>(std::move(members))) {}
ForeignNode::ForeignNode(std::initializer_list<Member> members) {
  auto owned = std::make_unique<Members>();
  owned->reserve(members.size());
  for (const Member& member : members) owned->push_back({member.key, std::move(member.value)});
  value_ = std::move(owned);
}
ForeignNode::~ForeignNode() = default;
ForeignNode::ForeignNode(ForeignNode&& other) noexcept = default;
ForeignNode& ForeignNode::operator=(ForeignNode&& other) noexcept = default;

const ForeignNode* ForeignNode::Find(std::string_view key) const {
  const Members* const members = if_object();
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, key, &Member::key);
  return found == members->end() ? nullptr : &found->value;
}

namespace internal::foreign {
namespace {

ForeignNode NumberOfText(std::string_view text) {
  std::int64_t integer = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto read = std::from_chars(begin, end, integer);
  if (read.ec == std::errc() && read.ptr == end) return integer;
  double real = 0;
  const bool is_beyond = std::from_chars(begin, end, real).ec == std::errc::result_out_of_range;
  if (is_beyond && text.find("e-") == text.npos && text.find("E-") == text.npos) {
    real = text.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
  }
  return real;
}

ForeignNode ReadValue(safetensors::JsonReader& reader) {  // recursive, to the reader's depth
  switch (reader.Peek()) {
    case safetensors::JsonReader::Kind::kObject: {
      ForeignNode::Members members;
      std::set<std::string> keys;
      std::string key;
      for (reader.BeginObject(); reader.NextKey(key);) {
        if (!keys.insert(key).second) reader.Fail("duplicate key");
        ForeignNode value = ReadValue(reader);
        members.push_back({key, std::move(value)});
      }
      return members;
    }
    case safetensors::JsonReader::Kind::kArray: {
      ForeignNode::List items;
      for (reader.BeginArray(); reader.NextElement();) items.push_back(ReadValue(reader));
      return items;
    }
    case safetensors::JsonReader::Kind::kString: {
      std::string text;
      reader.ReadString(text);
      return text;
    }
    case safetensors::JsonReader::Kind::kNumber:
      return NumberOfText(reader.ReadNumber());
    case safetensors::JsonReader::Kind::kLiteral: {
      const std::string_view literal = reader.ReadLiteral();
      if (literal == "null") return nullptr;
      return literal == "true";
    }
    case safetensors::JsonReader::Kind::kNone:
      break;
  }
  reader.Fail("expected a value");
  return nullptr;
}

void AppendList(std::string& out, const ForeignNode::List& items, bool is_sorted) {
  out.push_back('[');
  for (const ForeignNode& item : items) {
    if (&item != &items.front()) out.append(", ");
    out.append(PythonJson(item, is_sorted));
  }
  out.push_back(']');
}

void AppendMembers(std::string& out, const ForeignNode::Members& members, bool is_sorted) {
  std::vector<const ForeignNode::Member*> order;
  order.reserve(members.size());
  for (const ForeignNode::Member& member : members) order.push_back(&member);
  if (is_sorted) std::ranges::sort(order, {}, &ForeignNode::Member::key);
  out.push_back('{');
  for (const ForeignNode::Member* const member : order) {
    if (member != order.front()) out.append(", ");
    safetensors::AppendJson(out, member->key, safetensors::JsonCharacters::kAscii);
    out.append(": ").append(PythonJson(member->value, is_sorted));
  }
  out.push_back('}');
}

}  // namespace

std::string KindOf(const ForeignNode& node) {
  const ForeignNode* const kind = node.Find(kNodeKind);
  if (kind == nullptr) return "";
  return kind->if_text() != nullptr ? *kind->if_text() : "?";
}

ForeignNode TensorNode(const std::string& name) { return {{kNodeKind, "tensor"}, {"name", name}}; }

ForeignNode PairNode(ForeignNode key, ForeignNode value) {
  ForeignNode::List pair;
  pair.push_back(std::move(key));
  pair.push_back(std::move(value));
  return pair;
}

ForeignNode MappingNode(ForeignNode::Members entries) {
  const bool has_kind = std::ranges::any_of(
      entries, [](const ForeignNode::Member& entry) { return entry.key == kNodeKind; });
  if (!has_kind) return entries;
  ForeignNode::List items;
  for (auto& [key, value] : entries) items.push_back(PairNode(std::move(key), std::move(value)));
  return {{kNodeKind, "dict"}, {"items", std::move(items)}};
}

std::string PythonJson(const ForeignNode& value, bool is_sorted) {
  if (value.if_bool() != nullptr) return *value.if_bool() ? "true" : "false";
  if (value.if_int() != nullptr) return std::to_string(*value.if_int());
  if (value.if_float() != nullptr) return FloatText(*value.if_float());
  std::string out;
  if (value.if_text() != nullptr) {
    safetensors::AppendJson(out, *value.if_text(), safetensors::JsonCharacters::kAscii);
  } else if (value.if_list() != nullptr) {
    AppendList(out, *value.if_list(), is_sorted);
  } else if (value.if_object() != nullptr) {
    AppendMembers(out, *value.if_object(), is_sorted);
  } else {
    out = "null";
  }
  return out;
}

std::optional<ForeignNode> ParseNode(std::string_view text) {
  constexpr std::size_t kDepthMax = 200;
  safetensors::JsonReader reader(text, kDepthMax);
  ForeignNode node = ReadValue(reader);
  reader.End();
  if (!reader.status().ok()) return std::nullopt;
  return node;
}

}  // namespace internal::foreign
}  // namespace sealpoint
