// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_STAGED_COPY_H_
#define SEALPOINT_LIB_TRANSFER_STAGED_COPY_H_

#include <cstdint>
#include <vector>

#include "lib/layout/box_copy.h"

namespace sealpoint::internal::transfer {

// A copy to memory that is fastest with long rows. It takes two steps through dense staging memory,
// which holds the bytes in the order of their addresses in the target, regardless of signs and
// order of its strides.
struct StagedCopy {
  layout::StridedCopy
      pack;  // from the source to staging; dimensions as in the copy that it is made of
  layout::StridedCopy
      place;  // from staging to the target; normalized, with rows back to back in staging
};

// `target_element_size` is that of staging and target; it differs from that of the source if
// the first step converts elements. Precondition: no two elements share a byte of the
// target.
StagedCopy StageCopy(const layout::StridedCopy& copy, std::uint64_t target_element_size);

// The copy in parts of at most `size_max_bytes` of the target each (more for a single larger
// element), in row-major order. `target_element_size` is 0 if elements are unchanged: parts may
// then have another element size, and an element that is too large is cut.
std::vector<layout::StridedCopy> CutCopy(layout::StridedCopy copy,
                                         std::uint64_t target_element_size,
                                         std::uint64_t size_max_bytes);

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_STAGED_COPY_H_
