// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace char_lm {

// One parameter tensor inside the flat vector of all parameters.
struct ParameterTensor {
  std::string name;
  std::vector<std::size_t> shape;  // row-major; dimension 0 is the one that is sharded
  std::size_t begin;               // of its first element in the flat vector

  [[nodiscard]] std::size_t rows() const { return shape.front(); }
  [[nodiscard]] std::size_t row_elements() const {
    std::size_t count = 1;
    for (std::size_t d = 1; d < shape.size(); ++d) {
      count *= shape[d];
    }
    return count;
  }
  [[nodiscard]] std::size_t elements() const { return rows() * row_elements(); }

  template <typename T>
  [[nodiscard]] std::span<T> In(std::span<T> flat) const {
    return flat.subspan(begin, elements());
  }
};

}  // namespace char_lm
