// SPDX-License-Identifier: Apache-2.0
#include "readers/load/chunk_selection.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::load {
namespace {

// Half-open.
struct ChunkInterval {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The chunks that may hold elements of the boxes: disjoint, ascending intervals.
std::vector<ChunkInterval> CandidateChunks(const Region& shard, std::uint64_t chunk_elements,
                                           const std::vector<Box>& boxes) {
  std::vector<ChunkInterval> found;
  found.reserve(boxes.size());
  for (const Box& box : boxes) {
    const Run run = layout::CoveringRun(shard.box, box);
    found.push_back({(run.begin - shard.run.begin) / chunk_elements,
                     (run.end - 1 - shard.run.begin) / chunk_elements + 1});
  }
  std::sort(found.begin(), found.end(),
            [](const ChunkInterval& a, const ChunkInterval& b) { return a.begin < b.begin; });
  std::vector<ChunkInterval> merged;
  for (const ChunkInterval& interval : found) {
    if (!merged.empty() && interval.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, interval.end);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

}  // namespace

std::vector<SelectedChunk> SelectChunks(const Region& shard, std::uint64_t chunk_elements,
                                        const Region& requested,
                                        const std::vector<std::uint64_t>& steps) {
  std::vector<SelectedChunk> selected;
  // Most tensors of a state are small, and requested as they are stored.
  if (shard == requested && shard.element_count() <= chunk_elements) {
    selected.push_back({.chunk = 0, .region = shard, .parts = layout::DecomposeRun(shard)});
    return selected;
  }
  const auto hull = [&](Box box) {
    return layout::SteppedHull(std::move(box), requested.box.offset, steps);
  };
  std::vector<Box> boxes;
  for (Box& box : layout::IntersectRegions(shard, requested)) {
    if (auto selected_part = hull(std::move(box))) boxes.push_back(*std::move(selected_part));
  }
  const std::uint64_t elements = shard.element_count();
  for (const ChunkInterval& interval : CandidateChunks(shard, chunk_elements, boxes)) {
    for (std::uint64_t chunk = interval.begin; chunk < interval.end; ++chunk) {
      const std::uint64_t begin = chunk * chunk_elements;
      const std::uint64_t end = begin + std::min(chunk_elements, elements - begin);
      SelectedChunk candidate{
          .chunk = chunk, .region = layout::SubRun(shard, begin, end), .parts = {}};
      for (const Box& piece : layout::DecomposeRun(candidate.region)) {
        for (const Box& box : boxes) {
          auto part = layout::IntersectBoxes(piece, box);
          if (part) part = hull(*std::move(part));
          if (part) candidate.parts.push_back(*std::move(part));
        }
      }
      if (!candidate.parts.empty()) selected.push_back(std::move(candidate));
    }
  }
  return selected;
}

}  // namespace sealpoint::internal::load
