// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/region.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint {
namespace {

template <typename Print>
std::string Bracketed(std::size_t count, Print print) {
  std::string out = "[";
  for (std::size_t d = 0; d < count; ++d) {
    if (d != 0) out += ", ";
    out += print(d);
  }
  return out += "]";
}

Status NotAPart(const Region& region) {
  return internal::InvalidArgument("run ", region.run.begin, ":", region.run.end,
                                   " is not a part of the ",
                                   internal::layout::BoxElementCount(region.box),
                                   " elements of box ", Region::Of(region.box).ToString());
}

}  // namespace

Region Region::Whole(const Shape& shape) {
  return Of(Box{.offset = Shape(shape.size(), 0), .extent = shape});
}

Region Region::Of(Box box) { return {std::move(box)}; }

Region::Region(Box full_box)
    : box(std::move(full_box)), run{.begin = 0, .end = internal::layout::BoxElementCount(box)} {}

std::string Region::ToString() const {
  std::string out =
      Bracketed(std::min(box.offset.size(), box.extent.size()), [this](std::size_t d) {
        return internal::StrCat(box.offset[d], ":", box.offset[d] + box.extent[d]);
      });
  if (run.begin != 0 || run.end != internal::layout::BoxElementCount(box)) {
    out += internal::StrCat(" run ", run.begin, ":", run.end);
  }
  return out;
}

Result<std::uint64_t> ElementCount(const Shape& shape) {
  // A zero anywhere makes the product zero, however large the other extents are.
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return std::uint64_t{0};
  std::uint64_t count = 1;
  for (const std::uint64_t extent : shape) {
    const std::optional<std::uint64_t> product = internal::CheckedMul(count, extent);
    if (!product) {
      return internal::MakeError(Code::kLimitExceeded, "the element count of shape ",
                                 ShapeToString(shape), " does not fit 64 bits");
    }
    count = *product;
  }
  return count;
}

Result<bool> HasElements(const Shape& shape, const Region& region) {
  const Box& box = region.box;
  if (box.offset.size() != shape.size() || box.extent.size() != shape.size()) {
    return internal::InvalidArgument("a region with ", box.offset.size(), " offsets and ",
                                     box.extent.size(), " extents for a tensor of shape ",
                                     ShapeToString(shape));
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (!internal::RangeFits(box.offset[d], box.extent[d], shape[d])) {
      return internal::InvalidArgument("region at offset ", box.offset[d], " with extent ",
                                       box.extent[d], " leaves dimension ", d, " of shape ",
                                       ShapeToString(shape));
    }
  }
  SEALPOINT_RETURN_IF_ERROR(ElementCount(shape).status());
  const std::uint64_t box_count = internal::layout::BoxElementCount(box);
  const bool is_missing = shape.empty() && region == Region();
  if (is_missing || region.run.begin > region.run.end || region.run.end > box_count) {
    return NotAPart(region);
  }
  return region.run.begin < region.run.end;
}

Status CheckRegion(const Shape& shape, const Region& region) {
  const auto extent = std::ranges::find(region.box.extent, 0u);
  if (extent != region.box.extent.end()) {
    return internal::InvalidArgument("region ", region.ToString(), " is empty in dimension ",
                                     extent - region.box.extent.begin());
  }
  SEALPOINT_ASSIGN_OR_RETURN(const bool has_elements, HasElements(shape, region));
  return has_elements ? Status() : NotAPart(region);
}

std::string ShapeToString(const Shape& shape) {
  return Bracketed(shape.size(), [&shape](std::size_t d) { return std::to_string(shape[d]); });
}

}  // namespace sealpoint
