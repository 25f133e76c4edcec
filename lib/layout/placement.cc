// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/placement.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/intervals.h"

namespace sealpoint {
namespace internal::layout {
namespace {

// A local tensor of more boxes than this is a mistake: an index takes no more in one box list.
constexpr std::uint64_t kPartCountMax = 1u << 16;

// Applies one rule after the other to the positions of each dimension that this rank holds. Each
// rule cuts what the rules before it left, so that their order matters.
class Placer {
 public:
  Placer(const Mesh& mesh, std::vector<std::uint32_t> coordinates, const Shape& shape)
      : mesh_(mesh),
        coordinates_(std::move(coordinates)),
        shape_(shape),
        is_named_(coordinates_.size()),
        is_replicated_(coordinates_.size()) {
    for (const std::uint64_t extent : shape) {
      dims_.emplace_back();
      Append(dims_.back(), {0, extent});
    }
  }

  Status Apply(const Placement& placement);
  Result<LocalLayout> Finish() const;

 private:
  // This rank's coordinate on an axis that a rule names.
  struct Cut {
    std::uint64_t count = 1;
    std::uint64_t index = 0;
  };

  Result<Cut> TakeAxis(const std::string& axis);
  Result<Intervals*> Dim(int dim);

  Status operator()(const Replicate& rule);
  Status operator()(const LocalOnly& rule) { return TakeAxis(rule.axis).status(); }
  Status operator()(const Shard& rule);
  Status operator()(const ShardSections& rule);
  Status operator()(const StridedShard& rule);
  Status operator()(const Pad& rule);
  Status operator()(const ShardFlat& rule);

  std::vector<int> Replicas() const;
  Status AddBoxes(LocalLayout& layout) const;
  Status AddRuns(LocalLayout& layout) const;
  Status CheckFlatDims() const;

  const Mesh& mesh_;
  const std::vector<std::uint32_t> coordinates_;
  const Shape& shape_;
  std::vector<bool> is_named_;
  std::vector<bool> is_replicated_;
  std::vector<Intervals> dims_;
  bool is_flat_ = false;
  Cut flat_;
  std::uint64_t flat_unit_ = 1;
};

Status Placer::Apply(const Placement& placement) {
  for (const PlacementRule& rule : placement) {
    if (is_flat_ && !std::holds_alternative<Replicate>(rule) &&
        !std::holds_alternative<LocalOnly>(rule)) {
      return InvalidArgument(ToString(rule), " after shard_flat");
    }
    Status status = std::visit([this](const auto& any_rule) { return (*this)(any_rule); }, rule);
    if (!status.ok()) return std::move(status).Prefixed(ToString(rule));
  }
  for (std::size_t i = 0; i < is_named_.size(); ++i) {
    if (is_named_[i]) continue;
    return InvalidArgument("no rule names mesh axis ", mesh_.axes()[i].first);
  }
  return {};
}

Result<Placer::Cut> Placer::TakeAxis(const std::string& axis) {
  const auto found = mesh_.Find(axis);
  if (!found) return InvalidArgument("the mesh has no axis ", axis);
  if (is_named_[*found]) return InvalidArgument("mesh axis ", axis, " is named twice");
  is_named_[*found] = true;
  return Cut{.count = mesh_.axes()[*found].second, .index = coordinates_[*found]};
}

Result<Intervals*> Placer::Dim(int dim) {
  if (static_cast<std::size_t>(dim) >= dims_.size()) {  // a negative one is above all
    return InvalidArgument("dimension is ", dim, ", but the tensor has ", dims_.size(),
                           " dimensions");
  }
  return &dims_[static_cast<std::size_t>(dim)];
}

Status Placer::operator()(const Replicate& rule) {
  SEALPOINT_RETURN_IF_ERROR(TakeAxis(rule.axis).status());
  is_replicated_[*mesh_.Find(rule.axis)] = true;
  return {};
}

Status Placer::operator()(const Shard& rule) {
  SEALPOINT_ASSIGN_OR_RETURN(const Cut cut, TakeAxis(rule.axis));
  SEALPOINT_ASSIGN_OR_RETURN(Intervals* const dim, Dim(rule.dim));
  const std::uint64_t size = SizeOf(*dim);
  if (rule.unit == 0 || size % rule.unit != 0) {
    return InvalidArgument("unit is ", rule.unit, ", expected a divisor of the ", size,
                           " positions");
  }
  *dim = SliceOf(*dim, SplitPart(size, cut.count, cut.index, rule.rule, rule.unit));
  return {};
}

Status Placer::operator()(const ShardSections& rule) {
  SEALPOINT_ASSIGN_OR_RETURN(const Cut cut, TakeAxis(rule.axis));
  SEALPOINT_ASSIGN_OR_RETURN(Intervals* const dim, Dim(rule.dim));
  if (rule.sections.size() > kPartCountMax) {
    return InvalidArgument("rule has ", rule.sections.size(), " sections, the limit is ",
                           kPartCountMax);
  }
  Intervals parts;
  std::uint64_t begin = 0;
  const std::uint64_t size = SizeOf(*dim);
  for (const std::uint64_t section : rule.sections) {
    if (section > size - begin) return InvalidArgument("sections exceed the ", size, " positions");
    const Interval part = SplitPart(section, cut.count, cut.index, rule.rule);
    for (const Interval& interval : SliceOf(*dim, {begin + part.begin, begin + part.end})) {
      Append(parts, interval);
    }
    begin += section;
  }
  if (begin != size) return InvalidArgument("sections cover ", begin, " of ", size, " positions");
  *dim = std::move(parts);
  return {};
}

// The rule of torch's _StridedShard: tensor parallelism cuts a parameter first and FSDP2 cuts what
// is left, but the rule of FSDP2 comes first in the placement. So it takes one part of each of the
// split_factor parts that tensor parallelism makes.
Status Placer::operator()(const StridedShard& rule) {
  SEALPOINT_ASSIGN_OR_RETURN(const Cut cut, TakeAxis(rule.axis));
  SEALPOINT_ASSIGN_OR_RETURN(Intervals* const dim, Dim(rule.dim));
  if (rule.split_factor == 0 || rule.split_factor > kPartCountMax) {
    return InvalidArgument("split factor is ", rule.split_factor, ", expected 1 to ",
                           kPartCountMax);
  }
  Intervals parts;
  const std::uint64_t size = SizeOf(*dim);
  for (std::uint64_t i = 0; i < rule.split_factor; ++i) {
    const Interval whole = SplitPart(size, rule.split_factor, i, SplitRule::kCeilChunk);
    const Interval part = SplitPart(whole.size(), cut.count, cut.index, SplitRule::kCeilChunk);
    for (const Interval& interval :
         SliceOf(*dim, {whole.begin + part.begin, whole.begin + part.end})) {
      Append(parts, interval);
    }
  }
  *dim = std::move(parts);
  return {};
}

Status Placer::operator()(const Pad& rule) {
  SEALPOINT_ASSIGN_OR_RETURN(Intervals* const dim, Dim(rule.dim));
  const std::uint64_t extent = shape_[static_cast<std::size_t>(rule.dim)];
  const bool is_uncut = extent == 0 ? dim->empty() : *dim == Intervals{{0, extent}};
  if (!is_uncut) return InvalidArgument("padding after a rule that splits the same dimension");
  if (rule.size < extent) {
    return InvalidArgument("padded size is ", rule.size, ", expected at least the extent ", extent);
  }
  dim->clear();
  Append(*dim, {0, rule.size});
  return {};
}

Status Placer::operator()(const ShardFlat& rule) {
  if (rule.axes.empty() || rule.unit == 0) {
    return InvalidArgument("rule has ", rule.axes.size(), " axes and unit ", rule.unit,
                           ", expected at least 1 of each");
  }
  for (const std::string& axis : rule.axes) {
    SEALPOINT_ASSIGN_OR_RETURN(const Cut cut, TakeAxis(axis));
    flat_.count *= cut.count;  // no overflow: at most the number of ranks of the mesh
    flat_.index = flat_.index * cut.count + cut.index;
  }
  flat_unit_ = rule.unit;
  is_flat_ = true;
  return {};
}

// The ranks of the replica group in ascending order. All ranks of the group must get the same list,
// because the saver divides the group's bytes by it. The loops go through the axes from the fastest
// one on; each replicated axis repeats the ranks so far at its stride.
std::vector<int> Placer::Replicas() const {
  int first = 0;
  int stride = 1;  // of the current axis, in rank numbers
  for (std::size_t axis = coordinates_.size(); axis-- > 0;) {
    if (!is_replicated_[axis]) first += static_cast<int>(coordinates_[axis]) * stride;
    stride *= static_cast<int>(mesh_.axes()[axis].second);
  }
  std::vector<int> ranks = {first};
  stride = 1;
  for (std::size_t axis = coordinates_.size(); axis-- > 0;) {
    const int extent = static_cast<int>(mesh_.axes()[axis].second);
    const std::size_t block = ranks.size();
    if (is_replicated_[axis]) ranks.reserve(block * static_cast<std::size_t>(extent));
    for (int i = 1; is_replicated_[axis] && i < extent; ++i) {
      for (std::size_t k = 0; k < block; ++k) ranks.push_back(ranks[k] + i * stride);
    }
    stride *= extent;
  }
  return ranks;
}

// The part of a global interval that is not padding.
Interval Clip(Interval interval, std::uint64_t extent) {
  return {std::min(interval.begin, extent), std::min(interval.end, extent)};
}

Status Placer::AddBoxes(LocalLayout& layout) const {
  std::uint64_t count = 1;
  for (const Intervals& dim : dims_) {
    if (dim.empty()) return {};
    count *= dim.size();
    if (count > kPartCountMax) {
      return InvalidArgument("local tensor has at least ", count, " boxes, the limit is ",
                             kPartCountMax);
    }
  }
  Shape strides(dims_.size(), 1);
  for (std::size_t d = dims_.size(); d-- > 1;) strides[d - 1] = strides[d] * layout.shape[d];
  layout.parts.emplace_back().local_strides = strides;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    std::vector<LocalPart> longer;
    for (const LocalPart& part : layout.parts) {
      std::uint64_t position = 0;
      for (const Interval& interval : dims_[d]) {
        const Interval stored = Clip(interval, shape_[d]);
        if (stored.size() != 0) {
          longer.push_back(part);
          longer.back().region.box.offset.push_back(stored.begin);
          longer.back().region.box.extent.push_back(stored.size());
          longer.back().local_offset += position * strides[d];
        }
        position += interval.size();
      }
    }
    layout.parts = std::move(longer);
  }
  for (LocalPart& part : layout.parts) {
    const bool is_all = part.region.box.extent == layout.shape;
    if (is_all) part.local_strides.clear();
    part.region = Region::Of(std::move(part.region.box));
  }
  return {};
}

Status Placer::CheckFlatDims() const {
  for (std::size_t d = 1; d < dims_.size(); ++d) {
    const bool is_whole =
        dims_[d].size() <= 1 && (dims_[d].empty() || dims_[d][0].end <= shape_[d]);
    if (is_whole) continue;
    return InvalidArgument("dimension ", d,
                           " is cut into several parts or padded, so its flat ranges are not runs");
  }
  return {};
}

// A flat range is a run of the box only if all dimensions but the first are whole; then the box's
// row-major order is that of the flat local tensor. The first dimension may be in several
// intervals, each of which gives a box of its own.
Status Placer::AddRuns(LocalLayout& layout) const {
  SEALPOINT_RETURN_IF_ERROR(CheckFlatDims());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t elements, ElementCount(layout.shape));
  const std::uint64_t units = DivideRoundUp(elements, flat_unit_);
  if (!CheckedMul(units, flat_unit_)) {
    return MakeError(Code::kLimitExceeded, "flat ranges exceed 64 bits");
  }
  const Interval range =
      SplitPart(elements, flat_.count, flat_.index, SplitRule::kCeilChunk, flat_unit_);
  layout.shape = {DivideRoundUp(units, flat_.count) * flat_unit_};
  Intervals rows = {{0, 1}};
  if (!dims_.empty()) rows = dims_[0];
  Box box;
  std::uint64_t row = 1;  // elements
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    if (dims_[d].empty()) return {};
    box.offset.push_back(dims_[d][0].begin);
    box.extent.push_back(dims_[d][0].size());
    if (d > 0) row *= dims_[d][0].size();
  }
  std::uint64_t first = 0;  // flat position of the first element of these rows
  for (const Interval& all : rows) {
    const Interval stored = dims_.empty() ? all : Clip(all, shape_[0]);
    const std::uint64_t begin = std::max(first, range.begin);
    const std::uint64_t end = std::min(first + stored.size() * row, range.end);
    if (begin < end) {
      LocalPart part{.region = {box, {begin - first, end - first}},
                     .local_offset = begin - range.begin};
      if (!dims_.empty()) {
        part.region.box.offset[0] = stored.begin;
        part.region.box.extent[0] = stored.size();
      }
      layout.parts.push_back(std::move(part));
    }
    first += all.size() * row;
  }
  return {};
}

Result<LocalLayout> Placer::Finish() const {
  LocalLayout layout;
  for (const Intervals& dim : dims_) layout.shape.push_back(SizeOf(dim));
  SEALPOINT_RETURN_IF_ERROR(ElementCount(layout.shape).status());
  SEALPOINT_RETURN_IF_ERROR(is_flat_ ? AddRuns(layout) : AddBoxes(layout));
  layout.replicas = Replicas();
  return layout;
}

}  // namespace
}  // namespace internal::layout

Result<LocalLayout> PlaceTensor(const Mesh& mesh, int rank, const Shape& shape,
                                const Placement& placement) {
  SEALPOINT_RETURN_IF_ERROR(ElementCount(shape).status());
  SEALPOINT_ASSIGN_OR_RETURN(std::vector<std::uint32_t> coordinates, mesh.CoordinatesOf(rank));
  internal::layout::Placer placer(mesh, std::move(coordinates), shape);
  SEALPOINT_RETURN_IF_ERROR(placer.Apply(placement));
  return placer.Finish();
}

}  // namespace sealpoint
