// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/foreign/arguments.h"

#include <stdexcept>

#include "lib/interop/foreign/bytes.h"

namespace sealpoint::internal::foreign {
namespace {

using Kind = Pickled::Kind;

constexpr std::size_t kDimensionsMax = 64;

}  // namespace

void InvalidValue(const std::string& message) { throw std::invalid_argument(message); }

const Pickled& At(const PickledItems& items, std::size_t i) {
  if (i >= items.size()) InvalidValue("an argument is missing");
  return *items[i];
}

const PickledItems& ArgsOf(const Pickled& object) { return object.parts()->args->parts()->items; }

const PickledItems& SequenceOf(const Pickled& value) {
  if (!value.is_sequence()) {
    InvalidValue(StrCat("a value is a ", KindName(value), ", expected a list or tuple"));
  }
  return value.parts()->items;
}

std::uint64_t NaturalOf(const Pickled& value) {
  if (!value.is(Kind::kInt) || value.number < 0 || value.number >= std::int64_t{1} << 62) {
    const std::string found = value.is(Kind::kInt) ? StrCat(value.number) : KindName(value);
    InvalidValue(StrCat("a value is ", found, ", expected a size below 2^62"));
  }
  return static_cast<std::uint64_t>(value.number);
}

Shape SizesOf(const Pickled& value) {
  const bool is_size = value.is(Kind::kObject) && value.text == "torch.Size";
  const PickledItems& items = SequenceOf(is_size ? At(ArgsOf(value), 0) : value);
  if (items.size() > kDimensionsMax) InvalidValue("a shape has too many dimensions");
  Shape sizes;
  for (const Pickled* const item : items) sizes.push_back(NaturalOf(*item));
  return sizes;
}

const PickledPairs& PairsOf(const Pickled& value) {
  if (!value.is(Kind::kMapping) && !value.is(Kind::kObject)) {
    InvalidValue(StrCat("a value is a ", KindName(value), ", expected a mapping"));
  }
  return value.parts()->pairs;
}

const Pickled* Find(const Pickled& mapping, std::string_view key) {
  for (const auto& [name, value] : PairsOf(mapping)) {
    if (name->is(Kind::kText) && name->text == key) {
      return value->is(Kind::kNone) ? nullptr : value;
    }
  }
  return nullptr;
}

const Pickled& Get(const Pickled& mapping, std::string_view key) {
  const Pickled* const value = Find(mapping, key);
  if (value == nullptr) InvalidValue(StrCat("the entry ", key, " is missing"));
  return *value;
}

std::string NameOf(const Pickled& value) {
  if (!value.is(Kind::kText) || !IsText(value.text, false)) {
    InvalidValue(StrCat("a name is a ", KindName(value), ", expected a string of UTF-8"));
  }
  return std::string(value.text);
}

}  // namespace sealpoint::internal::foreign
