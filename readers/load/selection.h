// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_SELECTION_H_
#define SEALPOINT_READERS_LOAD_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lib/metadata/metadata.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// A pattern of names, as Checkpoint::MatchTensors describes it.
class NamePattern {
 public:
  // Errors: InvalidArgument (nothing after the last backslash).
  static Result<NamePattern> Parse(std::string_view text);

  // Precondition: well-formed UTF-8. Takes time for both lengths multiplied at most.
  bool Matches(std::string_view name) const;
  // What every name that matches begins with.
  const std::string& prefix() const { return prefix_; }

 private:
  // A byte, or one of these.
  static constexpr std::uint16_t kAnyCharacter = 256;
  static constexpr std::uint16_t kAnything = 257;

  std::vector<std::uint16_t> parts_;
  std::string prefix_;
};

// Numbers of tensors, half-open.
struct TensorRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The tensors whose names begin with this; they stand together, since names ascend. O(log n).
TensorRange TensorsWithPrefix(const Metadata& index, std::string_view prefix);

// The numbers of the tensors that match one of the patterns, ascending. Errors: InvalidArgument
// (Parse), NotFound (a pattern that matches no tensor).
Result<std::vector<std::size_t>> MatchTensors(const Metadata& index,
                                              const std::vector<std::string>& patterns);
// The same for objects.
Result<std::vector<std::size_t>> MatchObjects(const Metadata& index,
                                              const std::vector<std::string>& patterns);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_SELECTION_H_
