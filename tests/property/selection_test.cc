// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "tests/support/container/mini_container.h"

// Patterns against a matcher that follows the definition word by word, over all names.

namespace sealpoint::testing {
namespace {

using Characters = std::vector<std::string>;  // of UTF-8

std::string Join(const Characters& characters) {
  std::string text;
  for (const std::string& character : characters) text += character;
  return text;
}

// Few characters, so that names share beginnings; a pattern has to escape some of them.
Characters AnyCharacters(std::size_t count_max) {
  static const Characters all = {"a", "b", ".", "*", "?", "\\", "\xc3\xa9", "\xf0\x9f\x98\x80"};
  Characters characters(*rc::gen::inRange<std::size_t>(0, count_max + 1));
  for (std::string& character : characters)
    character = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  return characters;
}

// A part of a pattern: a wildcard, or a character that stands for itself.
struct Part {
  std::string character;
  bool is_wildcard = false;
  std::string text() const {
    const bool is_special = character == "*" || character == "?" || character == "\\";
    return is_special && !is_wildcard ? "\\" + character : character;
  }
};

bool Matches(const std::vector<Part>& parts, std::size_t part, const Characters& name,
             std::size_t at) {
  if (part == parts.size()) return at == name.size();
  if (parts[part].is_wildcard && parts[part].character == "*") {
    for (std::size_t next = at; next <= name.size(); ++next) {
      if (Matches(parts, part + 1, name, next)) return true;
    }
    return false;
  }
  if (at == name.size()) return false;
  const bool fits = parts[part].is_wildcard || parts[part].character == name[at];
  return fits && Matches(parts, part + 1, name, at + 1);
}

RC_GTEST_PROP(SelectionProperty, PatternsMatchAsTheyAreDefined, ()) {
  std::map<std::string, Characters> names;
  const auto name_count = *rc::gen::inRange<std::size_t>(1, 40);
  for (std::size_t i = 0; i < name_count; ++i) {
    Characters name = AnyCharacters(6);
    if (!name.empty()) names[Join(name)] = name;
  }
  if (names.empty()) names["a"] = {"a"};
  MiniSpec spec;
  for (const auto& [name, characters] : names) {
    spec.tensors.push_back({.name = name, .shape = {0}});
  }
  const auto memory = MemoryStorage();
  StoreFiles(*memory, "c", BuildMini(spec).files);
  const auto checkpoint = Checkpoint::Open("c", {.storage = memory}).value();

  for (int i = 0; i < 20; ++i) {
    std::vector<Part> parts;
    std::string pattern;
    for (const std::string& character : AnyCharacters(5)) {
      const bool may_be_wildcard = character == "*" || character == "?";
      parts.push_back({character, may_be_wildcard && *rc::gen::inRange(0, 4) != 0});
      pattern += parts.back().text();
    }
    std::vector<std::string> expected;
    for (const auto& [name, characters] : names) {
      if (Matches(parts, 0, characters, 0)) expected.push_back(name);
    }
    const auto found = checkpoint->MatchTensors({pattern});
    RC_ASSERT(found.ok() == !expected.empty());
    if (!found.ok()) continue;
    std::vector<std::string> found_names;
    for (const TensorInfo& tensor : *found) found_names.push_back(tensor.name);
    RC_ASSERT(found_names == expected);
  }
}

}  // namespace
}  // namespace sealpoint::testing
