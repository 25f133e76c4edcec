// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_REPLICAS_H_
#define SEALPOINT_LIB_LAYOUT_REPLICAS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sealpoint/region.h"

namespace sealpoint::internal {

// One region that every member of a replica group holds.
struct HeldRegion {
  Region region{};
  std::uint32_t element_size = 1;      // bytes
  std::uint64_t chunk_size_bytes = 0;  // power of two, multiple of element_size
};

// A part of held[held_index] that one holder writes: a sub-run that begins at a multiple of the
// chunk's elements from the region's begin.
struct Piece {
  std::size_t held_index = 0;
  std::size_t holder = 0;  // in [0, holder_count)
  Region region{};
};

// Divides the regions of one replica group among its holders: the regions are concatenated in the
// given (canonical) order; holder h writes the chunks that begin in bytes
// [h * total / holder_count, (h + 1) * total / holder_count) of that stream. So the bytes of each
// holder are less than one chunk (of the largest chunk size) away from even, and there are at most
// held.size() + holder_count - 1 pieces, in holder, then stream order. A pure function of its
// arguments, so all ranks agree. Preconditions: holder_count > 0; the regions passed CheckRegion;
// all bytes together fit 64 bits, as what is held in memory does.
std::vector<Piece> DivideEvenly(std::span<const HeldRegion> held, std::size_t holder_count);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_LAYOUT_REPLICAS_H_
