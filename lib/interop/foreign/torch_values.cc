// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/torch_values.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/known_classes.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr std::size_t kNestingMax = 200;
// More places than a pickle of this length has unless it is made to explode.
constexpr std::uint64_t kPlacesMin = 1'000'000;
// What nodes cost in memory, in bytes, beside their text: a list of numbers costs 16 each.
constexpr std::uint64_t kScalarCost = 16;
constexpr std::uint64_t kNodeCost = 256;
constexpr std::uint64_t kItemCost = 208;
constexpr std::uint64_t kNumberBits = 64;
constexpr std::uint64_t kUnreadCost = 2048;  // also of the error in Python
constexpr std::int64_t kIntMax = (std::int64_t{1} << 53) - 1;
constexpr std::size_t kClassShownMax = 200;
constexpr std::size_t kShownParts = 8;

// As Python's str() of the key that a pickle describes, for names; integers and strings stay.
PathPart PartOf(const Pickled& key);

std::string Repr(const Pickled& value) {
  switch (value.kind) {
    case Kind::kNone:
      return "None";
    case Kind::kBool:
      return value.number != 0 ? "True" : "False";
    case Kind::kInt:
      return std::to_string(value.number);
    case Kind::kFloat:
      return FloatText(value.real);
    case Kind::kText:
      return QuotedText(value.text);
    case Kind::kTuple: {
      std::string text = "(";
      for (const Pickled* const item : value.parts()->items) {
        text += (text.size() > 1 ? ", " : "") + Repr(*item);
      }
      return text + (value.parts()->items.size() == 1 ? ",)" : ")");
    }
    default:
      return std::string(value.text);
  }
}

PathPart PartOf(const Pickled& key) {
  if (key.is(Kind::kInt)) return key.number;
  return key.is(Kind::kText) ? std::string(key.text) : Repr(key);
}

// Whether Python could hash it: what a key, or an element of a set, has to be.
bool IsHashable(const Pickled& value) {
  if (value.is(Kind::kList) || value.is(Kind::kMapping) || value.is(Kind::kSet)) return false;
  if (!value.is(Kind::kTuple)) return true;
  return std::ranges::all_of(value.parts()->items,
                             [](const Pickled* one) { return IsHashable(*one); });
}

}  // namespace

TorchValues::PathScope::PathScope(TorchValues& values, const PathPart& part)
    : values_(values), size_(values.path_size_) {
  const auto* const key = std::get_if<std::string>(&part);
  values_.path_size_ += 1 + (key != nullptr ? key->size() : sizeof(std::int64_t));
  values_.path_.push_back(part);
}

TorchValues::PathScope::~PathScope() {
  values_.path_.pop_back();
  values_.path_size_ = size_;
}

void TorchValues::Refuse(Code code, const std::string& message, std::size_t shown_parts) const {
  const auto shown = static_cast<std::ptrdiff_t>(std::min(path_.size(), shown_parts));
  throw Failure{Status(code, message)
                    .AtPath(archive_.path())
                    .AtOffset(archive_.pickle_begin())
                    .AtObject(Printable(TextOf({path_.begin(), path_.begin() + shown})))};
}

ForeignNode TorchValues::Node(const Pickled& value, ValuePath path) {
  path_ = std::move(path);
  try {
    return WithNotes(value);
  } catch (const Unknown& unknown) {
    Refuse(Code::kUnsupported,
           StrCat("values of '", Printable(unknown.name.substr(0, kClassShownMax)),
                  "' cannot be represented"));
  }
}

std::optional<ForeignNode> TorchValues::NodeOrNothing(const Pickled& value, ValuePath path) {
  path_ = std::move(path);
  try {
    return WithNotes(value);
  } catch (const Unknown& unknown) {
    return Instead(unknown);
  }
}

std::optional<ForeignNode> TorchValues::Instead(const Unknown& unknown) {
  if (drops_unknown_) {
    state_.notes.push_back(StrCat(TextOf(path_), " is left out: its class is ", unknown.name));
    return std::nullopt;
  }
  Status error =
      MakeError(Code::kUnsupported, "values of '",
                Printable(unknown.name.substr(0, kClassShownMax)),
                "' cannot be represented; leave it out by its name, or all such values by "
                "drop_unknown")
          .AtPath(archive_.path())
          .AtOffset(archive_.pickle_begin())
          .AtObject(Printable(TextOf(path_)));
  return UnreadOf(std::move(error));
}

ForeignNode TorchValues::UnreadOf(Status error) {
  Cost(kUnreadCost);
  state_.unread.push_back({.error = std::move(error)});
  return ForeignNode::Unread{static_cast<std::uint32_t>(state_.unread.size() - 1)};
}

bool TorchValues::MayGoOn(const Status& error) const {
  const bool is_bounded =
      !archive_.budget().is_spent() && places_ <= std::max(kPlacesMin, 4 * archive_.pickle_size());
  return goes_on_ && (error.code() == Code::kUnsupported || error.code() == Code::kCorrupt ||
                      (error.code() == Code::kLimitExceeded && is_bounded));
}

ForeignNode TorchValues::WithNotes(const Pickled& value) {
  try {
    ForeignNode node = Plain(value);
    std::ranges::move(shared_, std::back_inserter(state_.notes));
    shared_.clear();
    return node;
  } catch (...) {
    TakeBack(0);
    throw;
  }
}

void TorchValues::TakeBack(std::size_t added) {
  for (; added_.size() > added; added_.pop_back()) {
    const Added& last = added_.back();
    state_.tensors.erase(last.name);
    if (!last.stored) continue;
    known_.erase(*last.stored);
    if (last.is_first) storages_.erase(last.stored->key);
  }
}

std::string TorchValues::Text(std::string_view text) const {
  if (!IsText(text, false)) Refuse(Code::kUnsupported, "string has surrogates, expected UTF-8");
  return std::string(text);
}

ForeignNode TorchValues::Plain(const Pickled& value) {
  if (path_.size() > kNestingMax || depth_ > 2 * kNestingMax) {
    Refuse(Code::kLimitExceeded, "values are nested deeper than 200 levels, or in a cycle",
           kShownParts);
  }
  if (++places_ > std::max(kPlacesMin, 4 * archive_.pickle_size())) {
    Refuse(Code::kLimitExceeded, "the pickle unfolds to more values than its length allows",
           kShownParts);
  }
  Cost(kScalarCost);
  ++depth_;
  ForeignNode node = MakeNode(value);
  --depth_;
  return node;
}

ForeignNode TorchValues::MakeNode(const Pickled& value) {
  if (value.kind > Kind::kBytes) Cost(kNodeCost);
  switch (value.kind) {
    case Kind::kNone:
      return nullptr;
    case Kind::kBool:
      return value.number != 0;
    case Kind::kInt:
      if (value.number >= -kIntMax && value.number <= kIntMax) return value.number;
      Cost(kNodeCost + kNumberBits);
      return {{kNodeKind, "int"}, {"value", std::to_string(value.number)}};
    case Kind::kLargeInt:
      Cost(kNodeCost + 4 * value.text.size());
      return {{kNodeKind, "int"}, {"value", value.text}};
    case Kind::kFloat:
      if (std::isfinite(value.real)) return value.real;
      return {{kNodeKind, "float"}, {"value", FloatText(value.real)}};
    case Kind::kText:
      Cost(pickle_cost::kText + CostOfText(value.text));
      return Text(value.text);
    case Kind::kBytes:
      Cost(kNodeCost + 2 * value.text.size());
      return {{kNodeKind, "bytes"}, {"base64", Base64(value.text)}};
    case Kind::kList:
      return Items(value.parts()->items);
    case Kind::kTuple:
      return {{kNodeKind, "tuple"}, {"items", Items(value.parts()->items)}};
    case Kind::kMapping:
      return Mapping(value.parts()->pairs);
    case Kind::kSet:
    case Kind::kFrozenSet:
      return Set(value.parts()->items, value.is(Kind::kFrozenSet));
    case Kind::kObject:
      return Object(value);
    case Kind::kGlobal: {
      if (!DTypeOfTorch(value.text)) throw Unknown{std::string(value.text)};
      constexpr std::string_view kModule = "torch.";
      const bool has_module = value.text.starts_with(kModule);
      return {{kNodeKind, "dtype"}, {"name", value.text.substr(has_module ? kModule.size() : 0)}};
    }
    case Kind::kPersistent:
      break;
  }
  Refuse(Code::kCorrupt, "unexpected persistent id");
}

ForeignNode TorchValues::Items(const PickledItems& items) {
  ForeignNode::List nodes;
  nodes.reserve(items.size());
  for (const Pickled* const item : items) {
    const PathScope scope(*this, static_cast<std::int64_t>(nodes.size()));
    nodes.push_back(Plain(*item));
  }
  return nodes;
}

void TorchValues::AddEntry(const Pickled& key, const Pickled& value, Entries& entries) {
  ForeignNode key_node = Plain(key);
  Cost(kItemCost + path_size_ + (key.is(Kind::kText) ? key.text.size() : 0));
  const bool is_key = key.kind <= Kind::kText || key.is(Kind::kTuple);
  if (!is_key) {
    Refuse(Code::kUnsupported,
           StrCat("a key is a ", KindName(key.kind), ", expected a string or a number"));
  }
  if (!IsHashable(key)) Refuse(Code::kCorrupt, "unhashable value in a key");
  const PathScope scope(*this, PartOf(key));
  const std::size_t depth = depth_;
  const std::size_t added = added_.size();
  const std::size_t shared = shared_.size();
  const auto take_back = [&] {
    depth_ = depth;
    TakeBack(added);
    shared_.resize(shared);
  };
  std::optional<ForeignNode> node;
  try {
    node = Plain(value);
  } catch (const Unknown& unknown) {
    take_back();
    node = Instead(unknown);
  } catch (Failure& failure) {
    if (!MayGoOn(failure.status)) throw;
    take_back();
    node = UnreadOf(std::move(failure.status));
  }
  if (node) entries.Put(std::move(key_node), *std::move(node));
}

// A key that comes again keeps its place.
void TorchValues::Entries::Put(ForeignNode key, ForeignNode node) {
  const auto [at, is_new] = positions.try_emplace(PythonJson(key), nodes.size());
  if (is_new) nodes.emplace_back(std::move(key), ForeignNode());
  nodes[at->second].second = std::move(node);
}

ForeignNode TorchValues::Mapping(const PickledPairs& pairs) {
  Entries entries;
  bool is_plain = true;
  for (const auto& [key, value] : pairs) {
    AddEntry(*key, *value, entries);
    is_plain &= key->is(Kind::kText) && key->text != kNodeKind;
  }
  if (is_plain) {
    ForeignNode::Members plain;
    plain.reserve(entries.nodes.size());
    for (auto& [key, node] : entries.nodes) plain.push_back({*key.if_text(), std::move(node)});
    return plain;
  }
  ForeignNode::List items;
  for (auto& [key, node] : entries.nodes) {
    items.push_back(PairNode(std::move(key), std::move(node)));
  }
  return {{kNodeKind, "dict"}, {"items", std::move(items)}};
}

ForeignNode TorchValues::Set(const PickledItems& items, bool is_frozen) {
  std::map<std::string, ForeignNode> sorted;  // each once
  Cost(CappedMul(items.size(), kItemCost));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const PathScope scope(*this, static_cast<std::int64_t>(i));
    ForeignNode node = Plain(*items[i]);
    if (!IsHashable(*items[i])) Refuse(Code::kCorrupt, "unhashable value in a set");
    std::string text = PythonJson(node, true);
    sorted.emplace(std::move(text), std::move(node));
  }
  ForeignNode::List nodes;
  for (auto& [text, node] : sorted) nodes.push_back(std::move(node));
  return {{kNodeKind, is_frozen ? "frozenset" : "set"}, {"items", std::move(nodes)}};
}

std::optional<ForeignTensor> TensorIn(const TorchArchive& archive, const Pickled& value) {
  ForeignCheckpoint found;
  TorchValues(archive, ForeignOptions(), found).Node(value, {"tensor"});
  if (found.tensors.size() != 1) return std::nullopt;
  return std::move(found.tensors.begin()->second);
}

}  // namespace sealpoint::internal::foreign
