// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_CUTS_H_
#define SEALPOINT_LIB_LAYOUT_CUTS_H_

#include <cstdint>
#include <vector>

#include "sealpoint/memory_view.h"
#include "sealpoint/region.h"

// Division of regions into boxes at the multiples of `cuts`, which has one entry per dimension (0:
// not cut), counted from the start of the tensor. Ranks that hold different regions therefore cut
// at the same positions. Precondition: a region with elements that passed CheckRegion.

namespace sealpoint::internal::layout {

// Number of the boxes; at most that of the elements.
std::uint64_t CountCutBoxes(const Region& region, const std::vector<std::uint64_t>& cuts);

// The boxes: disjoint, together the region. Those of a plain box are in row-major order.
std::vector<Box> CutRegion(const Region& region, const std::vector<std::uint64_t>& cuts);

// The memory of `part`, within memory of `held` that passed CheckView. Borrows the same memory. The
// result is dense if the elements of the part are contiguous.
MemoryView ViewOfBox(const MemoryView& view, const Region& held, const Box& part,
                     std::uint32_t element_size);

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_CUTS_H_
