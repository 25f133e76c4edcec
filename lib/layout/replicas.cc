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

// Chunks of a region of the stream that begin before `target`, both counted in bytes.
std::uint64_t ChunksBefore(std::uint64_t target, std::uint64_t region_begin,
                           const HeldRegion& held) {
  if (target <= region_begin) return 0;
  return std::min(DivideRoundUp(target - region_begin, held.chunk_size_bytes), ChunkCount(held));
}

// floor(total * holder / holder_count) without overflow.
std::uint64_t Share(std::uint64_t total, std::size_t holder, std::size_t holder_count) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Wide>(total) * holder / holder_count);
}

}  // namespace

std::vector<Piece> DivideEvenly(std::span<const HeldRegion> held, std::size_t holder_count) {
  SEALPOINT_CHECK(holder_count > 0);
  std::uint64_t total = 0;
  for (const HeldRegion& one : held) total += one.region.element_count() * one.element_size;

  std::vector<Piece> pieces;
  std::size_t holder = 0;
  std::uint64_t region_begin = 0;  // in the stream
  for (std::size_t index = 0; index < held.size(); ++index) {
    const HeldRegion& one = held[index];
    const std::uint64_t count = ChunkCount(one);
    std::uint64_t begin = 0;
    while (begin < count) {
      const bool is_last = holder + 1 == holder_count;
      const std::uint64_t target = Share(total, holder + 1, holder_count);
      const std::uint64_t end = is_last ? count : ChunksBefore(target, region_begin, one);
      if (end > begin) {
        pieces.push_back(
            {.held_index = index, .holder = holder, .region = ChunkRange(one, begin, end)});
        begin = end;
      }
      if (begin < count) ++holder;
    }
    region_begin += one.region.element_count() * one.element_size;
  }
  return pieces;
}

}  // namespace sealpoint::internal
