// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_SELECTION_H_
#define SEALPOINT_READERS_LOAD_SELECTION_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "lib/metadata/metadata.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// Numbers of tensors, half-open.
struct TensorRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// The tensors with names that begin with `prefix`; they are adjacent, because names ascend. O(log
// n).
TensorRange TensorsWithPrefix(const metadata::Metadata& index, std::string_view prefix);

// The numbers of the tensors that match one of the patterns, ascending. Errors: InvalidArgument
// (Parse), NotFound (a pattern that matches no tensor).
Result<std::vector<std::size_t>> MatchTensors(const metadata::Metadata& index,
                                              const std::vector<std::string>& patterns);
// The same for objects.
Result<std::vector<std::size_t>> MatchObjects(const metadata::Metadata& index,
                                              const std::vector<std::string>& patterns);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_SELECTION_H_
