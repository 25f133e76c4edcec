// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_TEXTS_LESS_H_
#define SEALPOINT_LIB_METADATA_TEXTS_LESS_H_

#include <algorithm>

namespace sealpoint::internal::metadata {

// Orders lists of texts. It allows searching a map without making a list of the texts to find.
struct TextsLess {
  using is_transparent = void;
  template <typename A, typename B>
  bool operator()(const A& a, const B& b) const {
    return std::ranges::lexicographical_compare(a, b);
  }
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_TEXTS_LESS_H_
