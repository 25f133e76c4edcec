// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_LAYOUT_REPLICAS_H_
#define SEALPOINT_LIB_LAYOUT_REPLICAS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sealpoint/region.h"

namespace sealpoint::internal::layout {

// The run of one region that every member of a replica group holds.
struct HeldRun {
  Run run{};
  std::uint32_t element_size = 1;      // bytes
  std::uint64_t chunk_size_bytes = 0;  // power of two, multiple of element_size
};

// The part of held[held_index] that one holder writes. It begins at a multiple of the elements per
// chunk from the begin of the held run, so that each chunk is written by one holder.
struct HolderShare {
  std::size_t held_index = 0;
  std::size_t holder = 0;  // in [0, holder_count)
  Run run{};
};

// Divides the runs of one replica group among its holders. The runs are concatenated in the given
// (canonical) order; holder h writes the chunks that begin in bytes
// [h * total / holder_count, (h + 1) * total / holder_count) of that stream. So the bytes of each
// holder are less than one chunk (of the largest chunk size) away from even, and there are at most
// held.size() + holder_count - 1 shares, sorted by holder, then by position in the stream. A pure
// function of its arguments, so that all ranks agree without a message. Preconditions: holder_count
// > 0; the runs are those of valid regions; all bytes together fit 64 bits, as bytes in memory do.
std::vector<HolderShare> DivideEvenly(std::span<const HeldRun> held, std::size_t holder_count);

}  // namespace sealpoint::internal::layout

#endif  // SEALPOINT_LIB_LAYOUT_REPLICAS_H_
