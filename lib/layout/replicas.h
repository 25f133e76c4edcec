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
// counts differ by at most one (the first total mod holder_count holders get one more). So bytes
// per holder are within one chunk of even and there are at most held.size() + holder_count - 1
// pieces. Pieces come in holder, then stream order; a pure function of its arguments, so all ranks
// agree.
std::vector<Piece> DivideEvenly(std::span<const HeldRegion> held, std::size_t holder_count);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_LAYOUT_REPLICAS_H_
