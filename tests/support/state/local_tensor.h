// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_STATE_LOCAL_TENSOR_H_
#define SEALPOINT_TESTS_SUPPORT_STATE_LOCAL_TENSOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>

#include "sealpoint/placement.h"
#include "tests/support/container/mini_container.h"

namespace sealpoint::testing {

inline std::uint64_t ElementsOf(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>());
}

// The dense local tensor that a rank with this layout has of a whole one; padding is 0xee. Goes
// through the parts element by element.
inline Bytes LocalTensor(const Bytes& whole, const Shape& shape, std::uint32_t element_size,
                         const LocalLayout& layout) {
  Bytes local(ElementsOf(layout.shape) * element_size, std::byte{0xee});
  for (const LocalPart& part : layout.parts) {
    const Bytes elements = ExtractRegion(whole, shape, element_size, part.region);
    for (std::uint64_t i = 0; i < part.region.element_count(); ++i) {
      std::uint64_t at = part.local_offset + i;
      if (!part.local_strides.empty()) {
        at = part.local_offset;
        for (std::size_t d = part.local_strides.size(), rest = i; d-- > 0;) {
          at += rest % part.region.box.extent[d] * part.local_strides[d];
          rest /= part.region.box.extent[d];
        }
      }
      std::copy_n(elements.begin() + static_cast<std::ptrdiff_t>(i * element_size), element_size,
                  local.begin() + static_cast<std::ptrdiff_t>(at * element_size));
    }
  }
  return local;
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_STATE_LOCAL_TENSOR_H_
