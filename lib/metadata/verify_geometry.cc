// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/layout/grid.h"
#include "lib/layout/tiling.h"
#include "lib/metadata/grid_view.h"
#include "lib/metadata/verify_metadata.h"

namespace sealpoint::internal::metadata {
namespace {

bool AscendInside(Numbers cuts, std::uint64_t size) {
  std::uint64_t previous = 0;
  for (const std::uint64_t cut : cuts) {
    if (cut <= previous || cut >= size) return false;
    previous = cut;
  }
  return true;
}

std::uint64_t SumOf(const FbCounts& counts) {
  std::uint64_t sum = 0;  // no overflow: fewer than 2^32 numbers of 32 bits
  for (const std::uint32_t count : counts) sum += count;
  return sum;
}

// The number of cells, or nothing if it exceeds `max`. The counts are hostile until the caller has
// compared the result with the shards, so that the product must not wrap.
std::optional<std::uint64_t> CountCells(const FbCounts& cut_counts, std::uint64_t max) {
  std::optional<std::uint64_t> cells = 1;
  for (const std::uint32_t count : cut_counts) {
    if (cells) cells = MulUpTo(*cells, std::uint64_t{count} + 1, max);
  }
  return cells;
}

// Checks lengths before positions: GridView and the subspan below read as many cuts as the counts
// announce, and trust that they are there.
Status VerifyRunCuts(const VerifyInput& input, const CheckedTensor& tensor, const fb::Grid& grid,
                     std::uint64_t cells) {
  constexpr std::string_view kRule = "R-IDX-15";
  if (grid.run_cut_counts() == nullptr) {
    return input.Corrupt(kRule, &grid, "grid has run cuts without run cut counts");
  }
  const FbCounts& counts = *grid.run_cut_counts();
  const Numbers run_cuts = NumbersOf(grid.run_cuts());
  if (counts.size() != cells || run_cuts.empty() || SumOf(counts) != run_cuts.size()) {
    return input.Corrupt(kRule, &grid, "grid has ", counts.size(), " run cut counts with sum ",
                         SumOf(counts), ", expected ", cells, " (its cells) with sum ",
                         run_cuts.size(), " (its run cuts)");
  }
  if (cells + run_cuts.size() != tensor.table->shards()->size()) {
    return input.Corrupt("R-IDX-14", &grid, "tensor has ", tensor.table->shards()->size(),
                         " shards, expected ", cells, " cells + ", run_cuts.size(), " run cuts");
  }
  std::size_t next = 0;
  const GridView view(tensor.shape, grid);
  const bool ascend = view.ForEachCell([&](std::uint64_t cell, std::uint64_t elements) {
    const std::size_t count = counts.Get(static_cast<flatbuffers::uoffset_t>(cell));
    const Numbers of_cell = run_cuts.subspan(next, count);
    next += count;
    return AscendInside(of_cell, elements);
  });
  if (ascend) return {};
  return input.Corrupt(kRule, &grid, "run cuts do not ascend strictly inside their cell");
}

// A box list that is read in place.
class BoxListView {
 public:
  explicit BoxListView(const CheckedTensor& tensor)
      : shape_(tensor.shape),
        boxes_(NumbersOf(tensor.table->boxes()->boxes())),
        runs_(NumbersOf(tensor.table->boxes()->runs())) {}

  Numbers box(std::size_t i) const {
    return boxes_.subspan(2 * i * shape_.size(), 2 * shape_.size());
  }
  bool has_runs() const { return !runs_.empty(); }
  Run StoredRun(std::size_t i) const { return Run{.begin = runs_[2 * i], .end = runs_[2 * i + 1]}; }

  bool LiesInShape(std::size_t i) const {
    const std::size_t ndim = shape_.size();
    const Numbers numbers = box(i);
    for (std::size_t d = 0; d < ndim; ++d) {
      if (numbers[ndim + d] == 0 || !RangeFits(numbers[d], numbers[ndim + d], shape_[d])) {
        return false;
      }
    }
    return true;
  }

  // Precondition: the box is in the shape.
  std::uint64_t ElementCount(std::size_t i) const {
    std::uint64_t count = 1;
    for (const std::uint64_t extent : box(i).subspan(shape_.size())) count *= extent;
    return count;
  }

 private:
  Numbers shape_;
  Numbers boxes_;
  Numbers runs_;
};

Status VerifyLengths(const VerifyInput& input, const CheckedTensor& tensor) {
  const fb::BoxList& list = *tensor.table->boxes();
  const std::uint64_t shards = tensor.table->shards()->size();
  if (shards > input.limits.box_list_shard_count_max) {
    return input.Fault(Code::kLimitExceeded, "R-IDX-04", &list, "box list has ", shards,
                       " shards, the limit is ", input.limits.box_list_shard_count_max);
  }
  if (list.boxes()->size() != shards * 2 * tensor.shape.size()) {
    return input.Corrupt("R-IDX-16", &list, "box list has ", list.boxes()->size(),
                         " numbers, expected ", shards * 2 * tensor.shape.size(), " for ", shards,
                         " boxes");
  }
  if (list.runs() != nullptr && list.runs()->size() != shards * 2) {
    return input.Corrupt("R-IDX-17", &list, "box list has ", list.runs()->size(),
                         " run numbers, expected ", shards * 2, " for ", shards, " shards");
  }
  return {};
}

Status VerifyRuns(const VerifyInput& input, const CheckedTensor& tensor, const BoxListView& view) {
  if (!view.has_runs()) return {};
  const fb::BoxList& list = *tensor.table->boxes();
  bool all_full = true;
  for (std::size_t i = 0; i < tensor.table->shards()->size(); ++i) {
    const Run run = view.StoredRun(i);
    const std::uint64_t elements = view.ElementCount(i);
    if (run.begin >= run.end || run.end > elements) {
      return input.Corrupt("R-IDX-17", &list, "run ", run.begin, ":", run.end,
                           " is empty or exceeds its box of ", elements, " elements");
    }
    all_full = all_full && run == Run{0, elements};
  }
  if (!all_full) return {};
  return input.Corrupt("R-IDX-17", &list, "box list has runs although all of them are full");
}

// Boxes ascend; runs of one box ascend and do not overlap. A wrong order is R-IDX-16, an overlap of
// two runs in right order R-IDX-18: the second check relies on the first.
Status VerifyOrder(const VerifyInput& input, const CheckedTensor& tensor, const BoxListView& view) {
  const fb::BoxList& list = *tensor.table->boxes();
  for (std::size_t i = 1; i < tensor.table->shards()->size(); ++i) {
    const Numbers before = view.box(i - 1);
    const Numbers box = view.box(i);
    const auto order = std::lexicographical_compare_three_way(before.begin(), before.end(),
                                                              box.begin(), box.end());
    if (order < 0) continue;
    const bool ascends =
        order == 0 && view.has_runs() && view.StoredRun(i - 1).begin < view.StoredRun(i).begin;
    if (!ascends) {
      return input.Corrupt("R-IDX-16", &list, "box ", i, " does not sort after box ", i - 1);
    }
    if (view.StoredRun(i).begin < view.StoredRun(i - 1).end) {
      return input.Corrupt("R-IDX-18", &list, "run of shard ", i, " begins at ",
                           view.StoredRun(i).begin, ", before the run of shard ", i - 1,
                           " of the same box ends at ", view.StoredRun(i - 1).end);
    }
  }
  return {};
}

Region CopyRegion(const BoxListView& view, std::size_t i, std::size_t ndim) {
  const Numbers box = view.box(i);
  Region region;
  region.box.offset.assign(box.begin(), box.begin() + static_cast<std::ptrdiff_t>(ndim));
  region.box.extent.assign(box.begin() + static_cast<std::ptrdiff_t>(ndim), box.end());
  region.run = view.has_runs() ? view.StoredRun(i) : Run{0, view.ElementCount(i)};
  return region;
}

// Returns for each dimension whether some box does not span it.
std::vector<bool> FindDivided(Numbers shape, const BoxListView& view, std::size_t count) {
  const std::size_t ndim = shape.size();
  std::vector<bool> divided(ndim, false);
  for (std::size_t i = 0; i < count; ++i) {
    const Numbers extents = view.box(i).subspan(ndim);
    for (std::size_t d = 0; d < ndim; ++d) {
      if (extents[d] != shape[d]) divided[d] = true;
    }
  }
  return divided;
}

// Joins each dimension that is not divided with the one before it. That keeps the row-major order
// of the elements, and so the runs, while regions of many dimensions become small.
Shape Joined(Numbers numbers, Numbers shape, const std::vector<bool>& divided) {
  Shape joined;
  for (std::size_t d = 0; d < numbers.size(); ++d) {
    if (d == 0 || divided[d]) {
      joined.push_back(numbers[d]);
    } else {
      joined.back() *= shape[d];
    }
  }
  return joined;
}

bool FormsGrid(Numbers shape, const BoxListView& view, std::size_t count) {
  const std::vector<bool> divided = FindDivided(shape, view, count);
  const auto divided_count = std::count(divided.begin(), divided.end(), true);
  // Each divided dimension has at least one cut, which doubles the cells. There are at most 32
  // dimensions, so that the shift is defined.
  if (std::uint64_t{1} << divided_count > count) return false;
  std::vector<Region> regions(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Numbers box = view.box(i);
    regions[i].box.offset = Joined(box.first(shape.size()), shape, divided);
    regions[i].box.extent = Joined(box.subspan(shape.size()), shape, divided);
    regions[i].run = view.has_runs() ? view.StoredRun(i) : Run{0, view.ElementCount(i)};
  }
  return layout::MatchGrid(Joined(shape, shape, divided), regions).has_value();
}

// Only for an index, which has all shards of the tensor; a manifest has those of one blob. The
// order of the two checks does not matter for soundness, since a grid tiles exactly, but it does
// for cost: MatchGrid is O(n log n) for any regions, while a grid of many dimensions may have too
// many corners for the tiling check.
Status VerifyTiling(const VerifyInput& input, const CheckedTensor& tensor,
                    const BoxListView& view) {
  const fb::BoxList& list = *tensor.table->boxes();
  const std::size_t count = tensor.table->shards()->size();
  if (FormsGrid(tensor.shape, view, count)) {
    return input.Corrupt("R-IDX-13", &list, "a box list whose shards form a grid");
  }
  const Shape shape(tensor.shape.begin(), tensor.shape.end());
  auto fault = layout::FindTilingFault(
      shape, count, [&](std::size_t i) { return CopyRegion(view, i, shape.size()); },
      layout::TilingCornerCountMax(input.limits, count));
  if (!fault.ok()) return std::move(fault).error().AtRule("R-IDX-04");  // more corners than allowed
  if (!*fault) return {};
  const layout::TilingFault& found = **fault;
  return input.Corrupt("R-IDX-18", &list, "element ", ShapeToString(found.element), " is in ",
                       found.times_covered, " shards, expected 1");
}

}  // namespace

// The order matters: the number of dimensions bounds the loops, the number of cells is compared
// with the shards before anything walks the cells, and the sum of the counts is compared with the
// cuts before GridView reads any cut. Exact tiling follows from strictly ascending cuts alone.
Status VerifyGrid(const VerifyInput& input, const CheckedTensor& tensor) {
  constexpr std::string_view kRule = "R-IDX-14";
  const fb::Grid& grid = *tensor.table->grid();
  const std::uint64_t shards = tensor.table->shards()->size();
  if (grid.cut_counts()->size() != tensor.shape.size()) {
    return input.Corrupt(kRule, &grid, "grid has ", grid.cut_counts()->size(),
                         " cut counts, expected ", tensor.shape.size(), ", one per dimension");
  }
  const auto cells = CountCells(*grid.cut_counts(), shards);
  const bool has_runs = grid.run_cut_counts() != nullptr || grid.run_cuts() != nullptr;
  if (!cells || (!has_runs && *cells != shards)) {
    return input.Corrupt(kRule, &grid, "tensor has ", shards, " shards, expected ",
                         cells ? StrCat(*cells) : "more", " for the cells of its grid");
  }
  if (SumOf(*grid.cut_counts()) != grid.cuts()->size()) {
    return input.Corrupt(kRule, &grid, "grid has ", grid.cuts()->size(), " cuts, expected ",
                         SumOf(*grid.cut_counts()), ", the sum of its cut counts");
  }
  const GridView view(tensor.shape, grid);
  for (std::size_t d = 0; d < view.ndim(); ++d) {
    if (!AscendInside(view.cuts(d), tensor.shape[d])) {
      return input.Corrupt(kRule, &grid, "cuts of dimension ", d,
                           " do not ascend strictly inside 0:", tensor.shape[d]);
    }
  }
  return has_runs ? VerifyRunCuts(input, tensor, grid, *cells) : Status();
}

// Lengths first, since BoxListView reads without checks; then each box by itself, so that products
// of extents cannot overflow; then runs, order and tiling, each of which relies on the one before.
Status VerifyBoxList(const VerifyInput& input, const CheckedTensor& tensor) {
  SEALPOINT_RETURN_IF_ERROR(VerifyLengths(input, tensor));
  const BoxListView view(tensor);
  for (std::size_t i = 0; i < tensor.table->shards()->size(); ++i) {
    if (view.LiesInShape(i)) continue;
    return input.Corrupt("R-IDX-16", tensor.table->boxes(), "box ", i,
                         " is empty or not within the shape");
  }
  SEALPOINT_RETURN_IF_ERROR(VerifyRuns(input, tensor, view));
  SEALPOINT_RETURN_IF_ERROR(VerifyOrder(input, tensor, view));
  return input.index != nullptr ? VerifyTiling(input, tensor, view) : Status();
}

}  // namespace sealpoint::internal::metadata
