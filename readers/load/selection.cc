// SPDX-License-Identifier: Apache-2.0
#include "readers/load/selection.h"

#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/name_pattern.h"

namespace sealpoint::internal::load {
namespace {

// The first number from `begin` on whose name is not `before`, of names of which it is true first
// and then false.
template <typename Before>
std::size_t FindName(const metadata::Metadata& index, std::size_t begin, const Before& before) {
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

TensorRange TensorsWithPrefix(const metadata::Metadata& index, std::string_view prefix) {
  const std::size_t begin =
      FindName(index, 0, [&](std::string_view name) { return name < prefix; });
  const std::size_t end =
      FindName(index, begin, [&](std::string_view name) { return name.starts_with(prefix); });
  return {begin, end};
}

Result<std::vector<std::size_t>> MatchTensors(const metadata::Metadata& index,
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

Result<std::vector<std::size_t>> MatchObjects(const metadata::Metadata& index,
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

}  // namespace sealpoint::internal::load
