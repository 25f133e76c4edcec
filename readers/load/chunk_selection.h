// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_CHUNK_SELECTION_H_
#define SEALPOINT_READERS_LOAD_CHUNK_SELECTION_H_

#include <cstdint>
#include <vector>

#include "sealpoint/region.h"

namespace sealpoint::internal::load {

// A chunk of a shard and its requested part.
struct SelectedChunk {
  std::uint64_t chunk = 0;  // number in the shard
  Region region;            // its elements
  std::vector<Box> parts;   // the requested ones, disjoint, in tensor coordinates
};

// The chunks of `shard` that hold elements of `requested`, ascending. If `steps` is not empty, only
// the elements at its multiples from the offset of the requested box count, and a part begins and
// ends with one of them. Costs time for the chunks
// between the first and the last element of each box that shard and requested region share.
// Preconditions: both regions passed CheckRegion for one shape; chunk_elements > 0.
std::vector<SelectedChunk> SelectChunks(const Region& shard, std::uint64_t chunk_elements,
                                        const Region& requested,
                                        const std::vector<std::uint64_t>& steps = {});

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_CHUNK_SELECTION_H_
