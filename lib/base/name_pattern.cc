// SPDX-License-Identifier: Apache-2.0
#include "lib/base/name_pattern.h"

#include <cstddef>
#include <optional>

#include "lib/base/errors.h"

namespace sealpoint::internal {
namespace {

// Where the character that begins at `at` ends. Precondition: at < name.size().
std::size_t EndOfCharacter(std::string_view name, std::size_t at) {
  const auto continues = [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
  };
  do {
    ++at;
  } while (at < name.size() && continues(name[at]));
  return at;
}

}  // namespace

Result<NamePattern> NamePattern::Parse(std::string_view text) {
  NamePattern pattern;
  bool is_prefix = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '*' || text[i] == '?') {
      pattern.parts_.push_back(text[i] == '*' ? kAnything : kAnyCharacter);
      is_prefix = false;
      continue;
    }
    if (text[i] == '\\') ++i;
    if (i == text.size()) {
      return InvalidArgument("the pattern ", text, " ends with a backslash");
    }
    pattern.parts_.push_back(static_cast<unsigned char>(text[i]));
    if (is_prefix) pattern.prefix_.push_back(text[i]);
  }
  return pattern;
}

// After a mismatch the last `*` takes one character more; an earlier one never has to, since the
// later could take what it left.
bool NamePattern::Matches(std::string_view name) const {
  struct Retry {
    std::size_t part = 0;
    std::size_t at = 0;
  };
  std::optional<Retry> retry;
  std::size_t part = 0;
  for (std::size_t at = 0; part < parts_.size() || at < name.size();) {
    if (part < parts_.size() && parts_[part] == kAnything) {
      retry = {part++, at};
    } else if (part < parts_.size() && at < name.size() && parts_[part] == kAnyCharacter) {
      ++part;
      at = EndOfCharacter(name, at);
    } else if (part < parts_.size() && at < name.size() &&
               parts_[part] == static_cast<unsigned char>(name[at])) {
      ++part;
      ++at;
    } else if (retry && retry->at < name.size()) {
      retry->at = EndOfCharacter(name, retry->at);
      part = retry->part + 1;
      at = retry->at;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace sealpoint::internal
