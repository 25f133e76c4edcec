// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "sealpoint/region.h"

namespace char_lm {

// One parameter tensor inside the flat vector of all parameters.
struct ParameterTensor {
  std::string name;
  sealpoint::Shape shape;  // row-major
  std::size_t begin;       // of its first element in the flat vector
  // The dimension that tensor parallelism cuts, as Megatron-LM does; none: each rank has it all.
  std::optional<int> tensor_parallel_dim;

  [[nodiscard]] std::size_t row_elements() const {
    std::size_t count = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) {
      count *= shape[d];
    }
    return count;
  }
  [[nodiscard]] std::size_t elements() const { return shape.front() * row_elements(); }

  template <typename T>
  [[nodiscard]] std::span<T> In(std::span<T> flat) const {
    return flat.subspan(begin, elements());
  }
};

}  // namespace char_lm
