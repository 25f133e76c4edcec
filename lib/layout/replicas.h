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
  std::uint32_t tensor = 0;  // the caller's number; carried through
  Region region;
  std::uint32_t element_size = 1;      // bytes
  std::uint64_t chunk_size_bytes = 0;  // power of two, multiple of element_size
};

// A part of held[held_index] that one holder writes: a sub-run that begins at a multiple of the
// chunk's elements from the region's begin.
struct Piece {
  std::size_t held_index = 0;
  std::size_t holder = 0;  // in [0, holder_count)
  Region region;
};

// Divides the regions of one replica group among its holders: the regions are concatenated in the
// given (canonical) order, measured in chunks, and cut into `holder_count` ranges of chunks whose
// counts differ by at most one (the first total mod holder_count holders get one more). The last
// chunk of a region counts as one however short it is, as its cost is mostly that of a request.
// There are at most held.size() + holder_count - 1 pieces, in holder, then stream order. A pure
// function of its arguments, so all ranks agree. Preconditions: holder_count > 0; the regions
// passed CheckRegion; all chunks together fit 64 bits, as what is held in memory does.
std::vector<Piece> DivideEvenly(std::span<const HeldRegion> held, std::size_t holder_count);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_LAYOUT_REPLICAS_H_
