// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "lib/interop/foreign/bytes.h"
#include "lib/interop/foreign/failure.h"
#include "lib/interop/foreign/pickle.h"
#include "sealpoint/bytes.h"

// What instructions do with the stack and with what was kept.

namespace sealpoint::internal::foreign {
namespace {

constexpr std::uint64_t kIntBytesMax = 1024;
constexpr std::size_t kShownMax = 200;

}  // namespace

Pickled* PickleDecoder::Make(Kind kind) {
  Pickled& value = values_.emplace_back();
  value.kind = kind;
  if (Pickled::HasParts(kind)) {
    Cost(kind == Kind::kObject ? pickle_cost::kObject : pickle_cost::kContainer);
    value.structure = &parts_.emplace_back();
  }
  return &value;
}

void PickleDecoder::PushBytes(Kind kind, std::uint64_t size) {
  const std::string_view bytes = Take(size);
  Cost(pickle_cost::kText + (kind == Kind::kText ? CostOfText(bytes) : size));
  Pickled* const value = Make(kind);
  value->text = kind == Kind::kText ? CheckText(bytes) : bytes;
  Push(value);
}

void PickleDecoder::PushInt(std::uint64_t size) {
  if (size > kIntBytesMax) {
    throw Failure{Status(Code::kLimitExceeded, StrCat("an integer has ", size, " bytes, expected ",
                                                      kIntBytesMax, " at most"))
                      .AtPath(path_)
                      .AtOffset(offset_ + at_)};
  }
  Cost(pickle_cost::kNumber + 4 * size + (size > 8 ? pickle_cost::kText : 0));
  const std::string_view bytes = Take(size);
  if (size > 8) {
    Push(Make(Kind::kLargeInt));
    Top()->text = texts_.emplace_back(DecimalText(bytes));
    return;
  }
  Push(Make(Kind::kInt));
  if (size == 0) return;
  const auto unused = static_cast<int>(64 - 8 * size);
  Top()->number = static_cast<std::int64_t>(NumberOf(bytes) << unused) >> unused;
}

void PickleDecoder::PushItems(Kind kind, PickledItems items) {
  Pickled* const value = Make(kind);
  value->structure->items = std::move(items);
  Push(value);
}

Pickled* PickleDecoder::Persistent(Pickled* id) {
  Pickled* const value = Make(Kind::kPersistent);
  value->structure->items.push_back(id);
  return value;
}

Pickled* PickleDecoder::Top() {
  const std::size_t floor = marks_.empty() ? 0 : marks_.back();
  if (stack_.size() <= floor) Corrupt("pickle ends too early, or pops an empty stack");
  return stack_.back();
}

Pickled* PickleDecoder::Pop() {
  Pickled* const top = Top();
  stack_.pop_back();
  return top;
}

PickledItems PickleDecoder::PopToMark() {
  if (marks_.empty()) Corrupt("pickle pops a mark that was never set");
  const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
  PickledItems items(begin, stack_.end());
  stack_.erase(begin, stack_.end());
  marks_.pop_back();
  return items;
}

PickledItems PickleDecoder::PopCount(std::size_t count) {
  PickledItems items(count);
  for (std::size_t i = count; i > 0; --i) items[i - 1] = Pop();
  return items;
}

void PickleDecoder::Extend(const PickledItems& items) {
  Pickled* const target = Top();
  const Kind kind = target->kind;
  if (kind != Kind::kList && kind != Kind::kSet && kind != Kind::kFrozenSet &&
      kind != Kind::kObject) {
    Corrupt(StrCat("pickle appends to a ", KindName(kind)));
  }
  PickledItems& into = target->structure->items;
  into.insert(into.end(), items.begin(), items.end());
}

void PickleDecoder::SetItems(const PickledItems& items) {
  Pickled* const target = Top();
  if ((!target->is(Kind::kMapping) && !target->is(Kind::kObject)) || items.size() % 2 != 0) {
    Corrupt(StrCat("pickle sets items of a ", KindName(target->kind), ", ", items.size(),
                   " keys and values"));
  }
  Cost(pickle_cost::kPair * (items.size() / 2));
  for (std::size_t i = 0; i < items.size(); i += 2) {
    target->structure->pairs.emplace_back(items[i], items[i + 1]);
  }
}

void PickleDecoder::AddGlobal(std::string name) {
  if (!keeps_unknown_ && !is_known_(name)) {
    Unsupported(StrCat("pickle names '", Printable(name.substr(0, kShownMax)),
                       "', which this reader does not know; nothing was run"));
  }
  Cost(pickle_cost::kObject + CostOfText(name));
  Pickled* const value = Make(Kind::kGlobal);
  value->text = texts_.emplace_back(std::move(name));
  Push(value);
}

void PickleDecoder::AddGlobalOfStack() {
  const Pickled* const name = Pop();
  const Pickled* const module = Pop();
  if (!name->is(Kind::kText) || !module->is(Kind::kText)) {
    Corrupt("the name of a class in the pickle is not a string");
  }
  std::string full(module->text);
  full += '.';
  full += name->text;
  AddGlobal(std::move(full));
}

void PickleDecoder::AddObject(bool is_new) {
  Pickled* const args = Pop();
  const Pickled* const made_by = Pop();
  if (!args->is(Kind::kTuple) || !made_by->is(Kind::kGlobal)) {
    Corrupt(StrCat("pickle ", is_new ? "makes an object of" : "calls", " a ", KindName(*made_by),
                   " with a ", KindName(*args), ", expected a class or function and a tuple"));
  }
  Pickled* const value = Make(Kind::kObject);
  value->text = made_by->text;
  value->structure->args = args;
  Push(value);
}

void PickleDecoder::SetState() {
  Pickled* const state = Pop();
  Pickled* const target = Top();
  if (!target->is(Kind::kObject) || target->structure->state != nullptr) {
    Corrupt(StrCat("pickle sets the state of a ", KindName(target->kind), ", or sets it twice"));
  }
  target->structure->state = state;
}

void PickleDecoder::Remember(std::uint64_t index) {
  Pickled* const value = Top();
  if (index < memo_.size()) {
    memo_[index] = value;
  } else if (index == memo_.size()) {
    memo_.push_back(value);
  } else {
    Cost(pickle_cost::kKept);
    memo_beyond_[index] = value;
  }
}

void PickleDecoder::Recall(std::uint64_t index) {
  const auto found = memo_beyond_.find(index);
  if (index < memo_.size()) return Push(memo_[index]);
  if (found == memo_beyond_.end()) {
    Corrupt(StrCat("pickle recalls value ", index, ", which was never stored"));
  }
  Push(found->second);
}

}  // namespace sealpoint::internal::foreign
