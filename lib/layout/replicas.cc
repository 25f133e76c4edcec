// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/replicas.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal {
namespace {

std::uint64_t ElementsPerChunk(const HeldRegion& held) {
  return held.chunk_size_bytes / held.element_size;
}

std::uint64_t ChunkCount(const HeldRegion& held) {
  return DivideRoundUp(held.region.element_count(), ElementsPerChunk(held));
}

// The chunks [begin, end) of a held region.
Region ChunkRange(const HeldRegion& held, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t per_chunk = ElementsPerChunk(held);
  const std::uint64_t count = held.region.element_count();
  // The last chunk may be short; its full end need not fit 64 bits.
  const std::uint64_t end_element = end == ChunkCount(held) ? count : end * per_chunk;
  return SubRun(held.region, begin * per_chunk, end_element);
}

}  // namespace

std::vector<Piece> DivideEvenly(std::span<const HeldRegion> held, std::size_t holder_count) {
  SEALPOINT_CHECK(holder_count > 0);
  std::uint64_t total = 0;
  for (const HeldRegion& region : held) total += ChunkCount(region);

  std::vector<Piece> pieces;
  std::size_t index = 0;
  std::uint64_t done = 0;  // chunks of held[index] that are given out
  for (std::size_t holder = 0; holder < holder_count; ++holder) {
    std::uint64_t wanted = total / holder_count + (holder < total % holder_count ? 1 : 0);
    while (wanted > 0) {
      const std::uint64_t count = ChunkCount(held[index]);
      const std::uint64_t taken = std::min(wanted, count - done);
      if (taken > 0) {
        pieces.push_back({.held_index = index,
                          .holder = holder,
                          .region = ChunkRange(held[index], done, done + taken)});
      }
      wanted -= taken;
      done += taken;
      if (done == count) {
        ++index;
        done = 0;
      }
    }
  }
  return pieces;
}

}  // namespace sealpoint::internal
