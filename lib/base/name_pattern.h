// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_BASE_NAME_PATTERN_H_
#define SEALPOINT_LIB_BASE_NAME_PATTERN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/status.h"

namespace sealpoint::internal {

// A pattern of names, as Checkpoint::MatchTensors describes it.
class NamePattern {
 public:
  // Errors: InvalidArgument (a backslash at the end).
  static Result<NamePattern> Parse(std::string_view text);

  // Precondition: well-formed UTF-8. Takes time for both lengths multiplied at most.
  bool Matches(std::string_view name) const;
  // Prefix of every matching name.
  const std::string& prefix() const { return prefix_; }

 private:
  // A byte, or one of these.
  static constexpr std::uint16_t kAnyCharacter = 256;
  static constexpr std::uint16_t kAnything = 257;

  std::vector<std::uint16_t> parts_;
  std::string prefix_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_BASE_NAME_PATTERN_H_
