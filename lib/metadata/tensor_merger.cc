// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/tensor_merger.h"

#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/tiling.h"
#include "sealpoint/dtype.h"

namespace sealpoint::internal::metadata {
namespace {

// Precondition: the product fits 64 bits.
std::uint64_t ElementsOf(const std::uint64_t* extents, std::size_t ndim) {
  std::uint64_t count = 1;
  for (std::size_t d = 0; d < ndim; ++d) count *= extents[d];
  return count;
}

}  // namespace

void TensorMerger::Begin(const TensorFields& fields, std::uint32_t blob) {
  fields_ = fields;
  first_blob_ = blob;
  parts_.clear();
}

Status TensorMerger::Join(const TensorFields& fields, std::uint32_t blob) {
  const auto differs = [&](std::string_view what, const auto& in_first, const auto& in_other) {
    return InvalidArgument(what, " is ", in_first, " in blob ", blob_name_(first_blob_), ", but ",
                           in_other, " in blob ", blob_name_(blob));
  };
  if (fields_.dtype != fields.dtype) {
    return differs("dtype", DTypeName(static_cast<DType>(fields_.dtype)),
                   DTypeName(static_cast<DType>(fields.dtype)));
  }
  if (fields_.element_size != fields.element_size) {
    return differs("element size", fields_.element_size, fields.element_size);
  }
  if (fields_.chunk_size_log2 != fields.chunk_size_log2) {
    return differs("chunk size", std::uint64_t{1} << fields_.chunk_size_log2,
                   std::uint64_t{1} << fields.chunk_size_log2);
  }
  const Numbers a = fields_.shape;
  const Numbers b = fields.shape;
  if (!std::equal(a.begin(), a.end(), b.begin(), b.end())) {
    return differs("shape", ShapeToString(Shape(a.begin(), a.end())),
                   ShapeToString(Shape(b.begin(), b.end())));
  }
  if (fields_.attributes != fields.attributes) {
    return InvalidArgument("attributes differ in blob ", blob_name_(first_blob_), " and in blob ",
                           blob_name_(blob));
  }
  if (!fields.fingerprint) fields_.fingerprint.reset();
  if (fields_.fingerprint) *fields_.fingerprint += *fields.fingerprint;
  return {};
}

void TensorMerger::AddShard(const std::uint64_t* box, std::optional<Run> run, fb::ShardRef ref) {
  const std::size_t ndim = fields_.shape.size();
  const Run full{0, ElementsOf(box + ndim, ndim)};
  const Run stored_run = run.value_or(full);
  parts_.push_back({.box = box, .run = stored_run, .is_full = stored_run == full, .ref = ref});
}

Result<MergedTensor> TensorMerger::Finish() {
  SortParts();
  MergedTensor merged{.fields = fields_};
  if (!parts_.empty()) {
    SEALPOINT_ASSIGN_OR_RETURN(merged.geometry, FindGeometry());
  }
  refs_.clear();
  for (const Part& part : parts_) refs_.push_back(part.ref);
  merged.shards = refs_;
  return merged;
}

// Sorts by box offset, then box extent, then run: the stored order that R-IDX-16 demands.
void TensorMerger::SortParts() {
  const std::size_t size = 2 * fields_.shape.size();
  const auto is_before = [size](const Part& a, const Part& b) {
    const auto [x, y] = std::mismatch(a.box, a.box + size, b.box);
    if (x != a.box + size) return *x < *y;
    return a.run < b.run;
  };
  if (!std::is_sorted(parts_.begin(), parts_.end(), is_before)) {
    std::sort(parts_.begin(), parts_.end(), is_before);
  }
}

Result<std::shared_ptr<const TensorGeometry>> TensorMerger::FindGeometry() {
  FillKey();
  const auto found = geometries_.find(key_);
  if (found != geometries_.end()) return found->second;
  FillRegions();
  const std::size_t ndim = fields_.shape.size();
  shape_.assign(fields_.shape.begin(), fields_.shape.end());
  const std::span<const Region> regions(regions_.data(), parts_.size());
  auto geometry = std::make_shared<TensorGeometry>();
  // MatchGrid must come first: a reader refuses a box list whose shards form a grid (R-IDX-13). Its
  // `order` is not used, since cells are numbered row-major, which is the order of their offsets
  // and so that of the sorted parts.
  if (auto match = layout::MatchGrid(shape_, regions)) {
    geometry->grid = std::move(match->grid);
  } else {
    SEALPOINT_RETURN_IF_ERROR(CheckTiling(regions));
    const auto boxes = key_.begin() + 1 + static_cast<std::ptrdiff_t>(ndim);
    const auto runs = boxes + static_cast<std::ptrdiff_t>(parts_.size() * 2 * ndim);
    geometry->boxes.assign(boxes, runs);
    geometry->runs.assign(runs, key_.end());
  }
  geometries_.emplace(key_, geometry);
  return std::shared_ptr<const TensorGeometry>(std::move(geometry));
}

// The number of shards, the shape, the boxes, then the runs unless all are full. Without the number
// any number of shards of a 0-d tensor would have the key of one, because their boxes are no
// numbers.
void TensorMerger::FillKey() {
  const std::size_t size = 2 * fields_.shape.size();
  key_.assign(1, parts_.size());
  key_.insert(key_.end(), fields_.shape.begin(), fields_.shape.end());
  for (const Part& part : parts_) key_.insert(key_.end(), part.box, part.box + size);
  if (std::all_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.is_full; })) return;
  for (const Part& part : parts_) {
    key_.push_back(part.run.begin);
    key_.push_back(part.run.end);
  }
}

// Reuses the memory of the regions of earlier tensors.
void TensorMerger::FillRegions() {
  const std::size_t ndim = fields_.shape.size();
  if (regions_.size() < parts_.size()) regions_.resize(parts_.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    regions_[i].box.offset.assign(part.box, part.box + ndim);
    regions_[i].box.extent.assign(part.box + ndim, part.box + 2 * ndim);
    regions_[i].run = part.run;
  }
}

Status TensorMerger::CheckTiling(std::span<const Region> regions) const {
  if (regions.size() > limits_.box_list_shard_count_max) {
    return MakeError(Code::kLimitExceeded, "tensor has ", regions.size(),
                     " shards that form no grid, the limit is ", limits_.box_list_shard_count_max);
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      const std::optional<layout::TilingFault> fault,
      layout::FindTilingFault(shape_, regions,
                              layout::TilingCornerCountMax(limits_, regions.size())));
  if (!fault) return {};
  const std::string element = ShapeToString(fault->element);
  if (fault->times_covered == 0) {
    return InvalidArgument("no shard holds element ", element, " of shape ", ShapeToString(shape_));
  }
  std::string holders;
  for (const std::size_t i : fault->holders) {
    holders += StrCat(holders.empty() ? "" : " and ", regions[i].ToString(), " in blob ",
                      blob_name_(parts_[i].ref.blob()));
  }
  return InvalidArgument("element ", element, " is in ", fault->times_covered,
                         " shards: ", holders);
}

}  // namespace sealpoint::internal::metadata
