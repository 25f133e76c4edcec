// SPDX-License-Identifier: Apache-2.0
//
// Small tensors, regions and memory, chosen by an input; and plain arithmetic, element by element,
// for the location of each element.
#ifndef SEALPOINT_FUZZ_SUPPORT_TAKE_LAYOUT_H_
#define SEALPOINT_FUZZ_SUPPORT_TAKE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fuzz/support/target.h"
#include "sealpoint/region.h"

namespace sealpoint::fuzz {

// At most 5 dimensions without an extent of 0, and at most `count_max` elements.
Shape TakeShape(InputReader& input, std::uint64_t count_max);
// Boxes and runs that lie in the shape.
Box TakeBox(InputReader& input, const Shape& shape);
Region TakeRegion(InputReader& input, const Shape& shape);
// Regions that tile it: a grid, boxes that no grid has, and runs of them.
std::vector<Region> TakeTiling(InputReader& input, const Shape& shape);

// The locations of the elements of a region in `size` bytes of memory.
struct MemoryLayout {
  std::vector<std::int64_t> strides;  // empty: dense
  std::size_t origin = 0;             // of the first element of the box; dense: of the region
  std::size_t size = 0;
};
// Dense, or dimensions in any order with gaps and of any sign (for a whole box only if
// `for_destination`).
MemoryLayout TakeLayout(InputReader& input, const Region& region, std::uint32_t element_size,
                        bool for_destination);
// The byte in the memory where element `i` of the run begins.
std::size_t ElementOffset(const MemoryLayout& layout, const Region& region,
                          std::uint32_t element_size, std::uint64_t i);
// The row-major number in the tensor of element `i` of the run.
std::uint64_t ElementNumber(const Shape& shape, const Region& region, std::uint64_t i);

}  // namespace sealpoint::fuzz

#endif  // SEALPOINT_FUZZ_SUPPORT_TAKE_LAYOUT_H_
