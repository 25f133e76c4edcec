// SPDX-License-Identifier: Apache-2.0
#include "readers/load/selection.h"

#include <algorithm>
#include <optional>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

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

// The first number from `begin` on whose name is not `before`, of names of which it is true first
// and then false.
template <typename Before>
std::size_t FindName(const Metadata& index, std::size_t begin, const Before& before) {
  std::size_t end = index.tensor_count();
  while (begin < end) {
    const std::size_t middle = begin + (end - begin) / 2;
    if (before(index.tensor(middle).name())) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

void SortUnique(std::vector<std::size_t>& numbers) {
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
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

TensorRange TensorsWithPrefix(const Metadata& index, std::string_view prefix) {
  const std::size_t begin =
      FindName(index, 0, [&](std::string_view name) { return name < prefix; });
  const std::size_t end =
      FindName(index, begin, [&](std::string_view name) { return name.starts_with(prefix); });
  return {begin, end};
}

Result<std::vector<std::size_t>> MatchTensors(const Metadata& index,
                                              const std::vector<std::string>& patterns) {
  std::vector<std::size_t> matches;
  for (const std::string& text : patterns) {
    SEALPOINT_ASSIGN_OR_RETURN(const NamePattern pattern, NamePattern::Parse(text));
    const std::size_t count_before = matches.size();
    const TensorRange range = TensorsWithPrefix(index, pattern.prefix());
    for (std::size_t i = range.begin; i < range.end; ++i) {
      if (pattern.Matches(index.tensor(i).name())) matches.push_back(i);
    }
    if (matches.size() == count_before) {
      return MakeError(Code::kNotFound, "no tensor matches the pattern").AtTensor(text);
    }
  }
  SortUnique(matches);
  return matches;
}

Result<std::vector<std::size_t>> MatchObjects(const Metadata& index,
                                              const std::vector<std::string>& patterns) {
  std::vector<std::size_t> matches;
  for (const std::string& text : patterns) {
    SEALPOINT_ASSIGN_OR_RETURN(const NamePattern pattern, NamePattern::Parse(text));
    const std::size_t count_before = matches.size();
    for (std::size_t i = 0; i < index.object_count(); ++i) {
      if (pattern.Matches(index.object(i).name())) matches.push_back(i);
    }
    if (matches.size() == count_before) {
      return MakeError(Code::kNotFound, "no object matches the pattern").AtObject(text);
    }
  }
  SortUnique(matches);
  return matches;
}

}  // namespace sealpoint::internal
