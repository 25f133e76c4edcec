// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_GRID_VIEW_H_
#define SEALPOINT_LIB_METADATA_GRID_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/metadata/generated_types.h"
#include "sealpoint/limits.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::metadata {

// A stored grid that is read in place, without allocation regardless of its size.
class GridView {
 public:
  // Preconditions: at most kNdimMax dimensions, one cut count for each, and as many cuts as the
  // counts add up to.
  GridView(Numbers shape, const fb::Grid& grid)
      : shape_(shape), cuts_(NumbersOf(grid.cuts())), counts_(*grid.cut_counts()) {
    std::uint64_t first = 0;
    for (std::size_t d = 0; d < ndim(); ++d) {
      first_cut_[d] = first;
      first += counts_.Get(static_cast<flatbuffers::uoffset_t>(d));
    }
    first_cut_[ndim()] = first;
  }

  std::size_t ndim() const { return shape_.size(); }
  Numbers cuts(std::size_t d) const {
    return cuts_.subspan(first_cut_[d], first_cut_[d + 1] - first_cut_[d]);
  }
  std::uint64_t intervals(std::size_t d) const { return first_cut_[d + 1] - first_cut_[d] + 1; }
  std::uint64_t begin(std::size_t d, std::uint64_t interval) const {
    return interval == 0 ? 0 : cuts_[first_cut_[d] + interval - 1];
  }
  std::uint64_t end(std::size_t d, std::uint64_t interval) const {
    return interval + 1 == intervals(d) ? shape_[d] : cuts_[first_cut_[d] + interval];
  }

  using CellIndex = std::array<std::uint64_t, kNdimMax>;

  Box Cell(const CellIndex& index) const {
    Box box;
    for (std::size_t d = 0; d < ndim(); ++d) {
      box.offset.push_back(begin(d, index[d]));
      box.extent.push_back(end(d, index[d]) - begin(d, index[d]));
    }
    return box;
  }

  // Calls visit(cell, elements of the cell) for each cell in row-major order; stops and returns
  // false if visit does. Precondition: the cuts ascend inside the extents.
  template <typename Visit>
  bool ForEachCell(Visit visit) const {
    CellIndex index{};
    // elements[d]: product of the cell's first d extents, so that a step costs the inner ones only.
    std::array<std::uint64_t, kNdimMax + 1> elements{};
    elements[0] = 1;
    std::size_t d = 0;
    for (std::uint64_t cell = 0;; ++cell) {
      for (; d < ndim(); ++d)
        elements[d + 1] = elements[d] * (end(d, index[d]) - begin(d, index[d]));
      if (!visit(cell, elements[ndim()])) return false;
      for (;;) {
        if (d == 0) return true;
        --d;
        if (++index[d] < intervals(d)) break;
        index[d] = 0;
      }
    }
  }

 private:
  Numbers shape_;
  Numbers cuts_;
  const FbCounts& counts_;
  std::array<std::uint64_t, kNdimMax + 1> first_cut_{};
};

// Calls visit(shard, elements of the shard) for each shard of a grid in stored order; stops and
// returns false if visit does. Precondition: the grid passed VerifyGrid.
template <typename Visit>
bool ForEachGridShard(Numbers shape, const fb::Grid& grid, Visit visit) {
  const GridView view(shape, grid);
  if (grid.run_cut_counts() == nullptr) return view.ForEachCell(visit);
  const Numbers run_cuts = NumbersOf(grid.run_cuts());
  std::uint64_t next_cut = 0;
  std::uint64_t shard = 0;
  return view.ForEachCell([&](std::uint64_t cell, std::uint64_t elements) {
    std::uint64_t begin = 0;
    const std::uint64_t count =
        grid.run_cut_counts()->Get(static_cast<flatbuffers::uoffset_t>(cell));
    for (std::uint64_t i = 0; i <= count; ++i) {
      const std::uint64_t end = i == count ? elements : run_cuts[next_cut++];
      if (!visit(shard++, end - begin)) return false;
      begin = end;
    }
    return true;
  });
}

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_GRID_VIEW_H_
