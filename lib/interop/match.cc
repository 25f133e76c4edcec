// SPDX-License-Identifier: Apache-2.0
#include "lib/interop/match.h"

#include <numeric>
#include <set>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/name_pattern.h"
#include "sealpoint/bytes.h"

namespace sealpoint::internal::interop {

Result<std::vector<std::size_t>> MatchNames(const std::vector<std::string>& patterns,
                                            const std::vector<std::string_view>& names) {
  if (patterns.empty()) {
    std::vector<std::size_t> all(names.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    return all;
  }
  std::set<std::size_t> found;
  for (const std::string& text : patterns) {
    SEALPOINT_ASSIGN_OR_RETURN(const NamePattern pattern, NamePattern::Parse(text));
    bool matches = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!pattern.Matches(names[i])) continue;
      matches = true;
      found.insert(i);
    }
    if (!matches) return MakeError(Code::kNotFound, "no tensor matches '", text, "'");
  }
  return std::vector<std::size_t>(found.begin(), found.end());
}

Status CheckBufferSize(std::uint64_t size_bytes) {
  constexpr std::uint64_t kLeast = 64 * kKiB;
  if (size_bytes >= kLeast) return {};
  return InvalidArgument("buffer_size_bytes is ", size_bytes, ", expected at least ", kLeast);
}

}  // namespace sealpoint::internal::interop
