// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/grid.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::layout {
namespace {

using Cuts = std::vector<std::uint64_t>;

// Interval number `index` of [0, size) cut at `cuts`.
Run IntervalOfCut(const Cuts& cuts, std::uint64_t size, std::uint64_t index) {
  return Run{.begin = index == 0 ? 0 : cuts[index - 1],
             .end = index == cuts.size() ? size : cuts[index]};
}

// The number of cells, or nothing if it exceeds `max`.
std::optional<std::uint64_t> CountCells(const std::vector<Cuts>& cuts, std::uint64_t max) {
  std::optional<std::uint64_t> count = 1;
  for (const Cuts& dimension : cuts) {
    if (count) count = MulUpTo(*count, dimension.size() + 1, max);
  }
  return count;
}

// The offsets at which boxes begin. If the boxes are the cells of a grid, these are all its cuts.
std::vector<Cuts> CutsFromOffsets(std::size_t ndim, std::span<const Region> regions) {
  std::vector<Cuts> cuts(ndim);
  for (std::size_t d = 0; d < ndim; ++d) {
    Cuts& offsets = cuts[d];
    // Neighbours in a list mostly share their offset in all dimensions but one.
    for (const Region& region : regions) {
      const std::uint64_t offset = region.box.offset[d];
      if (offset != 0 && (offsets.empty() || offsets.back() != offset)) offsets.push_back(offset);
    }
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    offsets.shrink_to_fit();
  }
  return cuts;
}

// The number of the cell that equals the box; nothing if there is none. Every offset is a cut or 0,
// so the box begins where some cell does; only its end must be compared.
std::optional<std::uint64_t> FindCell(const Shape& shape, const std::vector<Cuts>& cuts,
                                      const Box& box) {
  std::uint64_t cell = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const auto above = std::upper_bound(cuts[d].begin(), cuts[d].end(), box.offset[d]);
    const auto index = static_cast<std::uint64_t>(above - cuts[d].begin());
    const Run interval = IntervalOfCut(cuts[d], shape[d], index);
    if (box.offset[d] + box.extent[d] != interval.end) return std::nullopt;
    cell = cell * (cuts[d].size() + 1) + index;
  }
  return cell;
}

struct PlacedRun {
  std::uint64_t cell;
  Run run;
  std::size_t region;
};

// The runs of all regions, sorted by cell and position; empty if some box is not a cell.
std::vector<PlacedRun> PlaceRuns(const Shape& shape, const std::vector<Cuts>& cuts,
                                 std::span<const Region> regions) {
  std::vector<PlacedRun> runs;
  runs.reserve(regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto cell = FindCell(shape, cuts, regions[i].box);
    if (!cell) return {};
    runs.push_back({.cell = *cell, .run = regions[i].run, .region = i});
  }
  const auto is_before = [](const PlacedRun& a, const PlacedRun& b) {
    return a.cell != b.cell ? a.cell < b.cell : a.run.begin < b.run.begin;
  };
  if (!std::is_sorted(runs.begin(), runs.end(), is_before)) {
    std::sort(runs.begin(), runs.end(), is_before);
  }
  return runs;
}

// The run cuts of each cell, or nothing if the runs of some cell do not tile it.
std::optional<std::vector<Cuts>> CutsFromRuns(const std::vector<PlacedRun>& runs,
                                              std::span<const Region> regions,
                                              std::uint64_t cell_count) {
  std::vector<Cuts> run_cuts(runs.size() == cell_count ? 0 : cell_count);
  std::size_t next = 0;
  for (std::uint64_t cell = 0; cell < cell_count; ++cell) {
    std::uint64_t covered = 0;
    for (; next < runs.size() && runs[next].cell == cell; ++next) {
      if (runs[next].run.begin != covered) return std::nullopt;
      if (covered != 0 && !run_cuts.empty()) run_cuts[cell].push_back(covered);
      covered = runs[next].run.end;
    }
    if (covered == 0) return std::nullopt;
    if (covered != BoxElementCount(regions[runs[next - 1].region].box)) return std::nullopt;
  }
  return run_cuts;
}

}  // namespace

std::optional<GridMatch> MatchGrid(const Shape& shape, std::span<const Region> regions) {
  GridMatch match;
  match.grid.cuts = CutsFromOffsets(shape.size(), regions);
  // Every cell needs a region, so that a greater count cannot match. Without this bound n boxes
  // along a diagonal would make n^ndim cells (spec/decisions/0003).
  const auto cell_count = CountCells(match.grid.cuts, regions.size());
  if (!cell_count) return std::nullopt;
  const auto runs = PlaceRuns(shape, match.grid.cuts, regions);
  auto run_cuts = CutsFromRuns(runs, regions, *cell_count);
  if (!run_cuts) return std::nullopt;
  match.grid.run_cuts = *std::move(run_cuts);
  match.order.reserve(runs.size());
  for (const PlacedRun& run : runs) match.order.push_back(run.region);
  return match;
}

}  // namespace sealpoint::internal::layout
