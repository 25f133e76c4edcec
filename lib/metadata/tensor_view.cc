// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/tensor_view.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/layout/region_algebra.h"
#include "lib/metadata/grid_view.h"

namespace sealpoint::internal::metadata {
namespace {

const fb::Tensor& AsTensor(const void* table) { return *static_cast<const fb::Tensor*>(table); }
const fb::Object& AsObject(const void* table) { return *static_cast<const fb::Object*>(table); }

ShardRef RefOf(const fb::ShardRef& ref) {
  return ShardRef{.blob = ref.blob(), .first_record = ref.first_record()};
}

using NumberedRegions = std::vector<std::pair<std::size_t, Region>>;

// Adds the region if it may share an element with `target`. This is conservative for runs: the run
// is compared with the smallest run that covers the intersection of the boxes, so that a region may
// be added that shares no element. Callers intersect exactly; a region left out would be lost.
void AddIfTouching(std::size_t shard, Region region, const Box& target, NumberedRegions* found) {
  const auto common = layout::IntersectBoxes(region.box, target);
  if (!common) return;
  const Run covering = layout::CoveringRun(region.box, *common);
  if (region.run.end <= covering.begin || covering.end <= region.run.begin) return;
  found->emplace_back(shard, std::move(region));
}

// Finds the shards of a grid by cell.
class GridShards {
 public:
  GridShards(Numbers shape, const fb::Grid& grid)
      : view_(shape, grid),
        run_counts_(grid.run_cut_counts()),
        run_cuts_(NumbersOf(grid.run_cuts())) {
    if (run_counts_ == nullptr) return;
    first_run_cut_.reserve(run_counts_->size());
    std::uint64_t first = 0;
    for (const std::uint32_t count : *run_counts_) {
      first_run_cut_.push_back(first);
      first += count;
    }
  }

  const GridView& view() const { return view_; }

  // Calls visit(shard, region) for the shards of a cell in order.
  template <typename Visit>
  void ForEachShardOfCell(const GridView::CellIndex& index, const Visit& visit) const {
    std::uint64_t cell = 0;
    for (std::size_t d = 0; d < view_.ndim(); ++d) cell = cell * view_.intervals(d) + index[d];
    Region region = Region::Of(view_.Cell(index));
    if (run_counts_ == nullptr) {
      visit(cell, std::move(region));
      return;
    }
    const std::uint64_t elements = region.run.end;
    const std::uint64_t first = first_run_cut_[cell];
    const std::uint64_t count = run_counts_->Get(static_cast<flatbuffers::uoffset_t>(cell));
    for (std::uint64_t i = 0; i <= count; ++i) {
      region.run.begin = i == 0 ? 0 : run_cuts_[first + i - 1];
      region.run.end = i == count ? elements : run_cuts_[first + i];
      visit(cell + first + i, region);
    }
  }

 private:
  GridView view_;
  const FbCounts* run_counts_;
  Numbers run_cuts_;
  std::vector<std::uint64_t> first_run_cut_;  // per cell; empty without run cuts
};

// Calls visit(index) for each cell with begin[d] <= index[d] < end[d], in row-major order.
template <typename Visit>
void ForEachCellIndex(std::size_t ndim, const GridView::CellIndex& begin,
                      const GridView::CellIndex& end, Visit visit) {
  GridView::CellIndex index = begin;
  for (;;) {
    visit(index);
    std::size_t d = ndim;
    for (;;) {
      if (d == 0) return;
      --d;
      if (++index[d] < end[d]) break;
      index[d] = begin[d];
    }
  }
}

NumberedRegions GridShardsTouching(Numbers shape, const fb::Grid& grid, const Box& target) {
  NumberedRegions found;
  const GridShards shards(shape, grid);
  GridView::CellIndex begin{};
  GridView::CellIndex end{};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (target.extent[d] == 0 || target.offset[d] >= shape[d]) return found;
    const std::uint64_t last =
        target.offset[d] + std::min(target.extent[d] - 1, shape[d] - 1 - target.offset[d]);
    const Numbers cuts = shards.view().cuts(d);
    const auto interval_of = [cuts](std::uint64_t position) {
      const auto above = std::upper_bound(cuts.begin(), cuts.end(), position);
      return static_cast<std::uint64_t>(above - cuts.begin());
    };
    begin[d] = interval_of(target.offset[d]);
    end[d] = interval_of(last) + 1;
  }
  ForEachCellIndex(shape.size(), begin, end, [&](const GridView::CellIndex& index) {
    shards.ForEachShardOfCell(index, [&](std::uint64_t shard, Region region) {
      AddIfTouching(shard, std::move(region), target, &found);
    });
  });
  return found;
}

// Calls visit(shard, region) for all shards in order.
template <typename Visit>
void VisitBoxListShards(const fb::Tensor& tensor, const Visit& visit) {
  const std::size_t ndim = tensor.shape()->size();
  const Numbers boxes = NumbersOf(tensor.boxes()->boxes());
  const Numbers runs = NumbersOf(tensor.boxes()->runs());
  for (std::size_t i = 0; i < tensor.shards()->size(); ++i) {
    const Numbers offset = boxes.subspan(2 * i * ndim, ndim);
    const Numbers extent = boxes.subspan((2 * i + 1) * ndim, ndim);
    Region region;
    region.box.offset.assign(offset.begin(), offset.end());
    region.box.extent.assign(extent.begin(), extent.end());
    region.run = runs.empty() ? Run{0, layout::BoxElementCount(region.box)}
                              : Run{.begin = runs[2 * i], .end = runs[2 * i + 1]};
    visit(i, std::move(region));
  }
}

template <typename Visit>
void VisitGridShards(Numbers shape, const fb::Grid& grid, const Visit& visit) {
  const GridShards shards(shape, grid);
  GridView::CellIndex end{};
  for (std::size_t d = 0; d < shape.size(); ++d) end[d] = shards.view().intervals(d);
  ForEachCellIndex(shape.size(), {}, end, [&](const GridView::CellIndex& index) {
    shards.ForEachShardOfCell(index, visit);
  });
}

}  // namespace

std::optional<Fingerprint> TensorView::fingerprint() const {
  const fb::Bits128* const bits = has_fingerprint_ ? AsTensor(table_).fingerprint() : nullptr;
  if (bits == nullptr) return std::nullopt;
  return Fingerprint(FingerprintValuesOf(*bits));
}

std::string_view TensorView::attributes() const {
  return has_attributes_ ? TextOf(AsTensor(table_).attributes()) : std::string_view();
}

std::uint64_t ChunkCount(std::uint64_t raw_size, std::uint64_t chunk_size) {
  return DivideRoundUp(raw_size, chunk_size);
}

std::string_view TensorView::name() const { return TextOf(AsTensor(table_).name()); }

DType TensorView::dtype() const { return static_cast<DType>(AsTensor(table_).dtype()); }

std::uint32_t TensorView::element_size() const { return AsTensor(table_).element_size(); }

std::uint64_t TensorView::chunk_size() const {
  return std::uint64_t{1} << AsTensor(table_).chunk_size_log2();
}

Shape TensorView::shape() const {
  const Numbers shape = NumbersOf(AsTensor(table_).shape());
  return Shape(shape.begin(), shape.end());
}

std::uint64_t TensorView::element_count() const {
  std::uint64_t count = 1;
  for (const std::uint64_t extent : NumbersOf(AsTensor(table_).shape())) {
    if (extent == 0) return 0;
    count *= extent;
  }
  return count;
}

std::vector<std::string> TensorView::placement() const {
  std::vector<std::string> placement;
  if (AsTensor(table_).placement() == nullptr) return placement;
  for (const flatbuffers::String* text : *AsTensor(table_).placement()) {
    placement.emplace_back(TextOf(text));
  }
  return placement;
}

std::size_t TensorView::shard_count() const { return AsTensor(table_).shards()->size(); }

ShardRef TensorView::shard_ref(std::size_t shard) const {
  return RefOf(*AsTensor(table_).shards()->Get(static_cast<flatbuffers::uoffset_t>(shard)));
}

bool TensorView::is_grid() const { return AsTensor(table_).grid() != nullptr; }

bool TensorView::IsOneShard(const Region& region) const {
  return shard_count() == 1 &&
         std::ranges::equal(region.box.extent, NumbersOf(AsTensor(table_).shape())) &&
         region.run == Run{0, layout::BoxElementCount(region.box)};
}

void TensorView::ForEachShard(
    const std::function<void(std::size_t shard, Region region)>& visit) const {
  const fb::Tensor& tensor = AsTensor(table_);
  if (tensor.grid() != nullptr) {
    VisitGridShards(NumbersOf(tensor.shape()), *tensor.grid(), visit);
  } else if (tensor.boxes() != nullptr) {
    VisitBoxListShards(tensor, visit);
  }
}

std::vector<Region> TensorView::regions() const {
  std::vector<Region> regions;
  regions.reserve(shard_count());
  ForEachShard([&](std::size_t, Region region) { regions.push_back(std::move(region)); });
  return regions;
}

std::vector<std::pair<std::size_t, Region>> TensorView::ShardsTouching(const Box& box) const {
  const fb::Tensor& tensor = AsTensor(table_);
  if (tensor.grid() != nullptr) {
    return GridShardsTouching(NumbersOf(tensor.shape()), *tensor.grid(), box);
  }
  NumberedRegions found;
  if (tensor.boxes() == nullptr) return found;
  VisitBoxListShards(tensor, [&](std::size_t shard, Region region) {
    AddIfTouching(shard, std::move(region), box, &found);
  });
  return found;
}

std::string_view ObjectView::name() const { return TextOf(AsObject(table_).name()); }

std::string_view ObjectView::media_type() const { return TextOf(AsObject(table_).media_type()); }

std::uint64_t ObjectView::size() const { return AsObject(table_).size(); }

std::uint64_t ObjectView::chunk_size() const {
  return std::uint64_t{1} << AsObject(table_).chunk_size_log2();
}

ShardRef ObjectView::shard_ref() const { return RefOf(*AsObject(table_).shard()); }

}  // namespace sealpoint::internal::metadata
