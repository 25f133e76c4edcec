// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_COMPARE_SELECT_TENSORS_H_
#define SEALPOINT_LIB_COMPARE_SELECT_TENSORS_H_

#include <cstddef>
#include <numeric>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/content.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::compare {

// The tensors selected by the options, ascending. Errors: NotFound (a pattern without a match).
inline Result<std::vector<std::size_t>> SelectTensors(const Checkpoint& checkpoint,
                                                      const ContentOptions& options) {
  if (!options.patterns.empty()) return checkpoint.MatchTensorNumbers(options.patterns);
  std::vector<std::size_t> all(checkpoint.tensor_count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace sealpoint::internal::compare

#endif  // SEALPOINT_LIB_COMPARE_SELECT_TENSORS_H_
