// SPDX-License-Identifier: Apache-2.0
#include "readers/load/destination.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/box_copy.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/view_checks.h"

namespace sealpoint::internal::load {
namespace {

// No two elements of a box share a byte: from the least stride on, each steps over all that those
// below it span. (CheckView has found the spans in the memory, so they fit 64 bits.)
Status CheckApart(const Box& box, const std::vector<std::int64_t>& strides_bytes,
                  std::uint32_t element_size) {
  std::vector<std::size_t> dimensions;
  for (std::size_t d = 0; d < box.extent.size(); ++d) {
    if (box.extent[d] > 1) dimensions.push_back(d);
  }
  const auto step = [&](std::size_t d) { return Magnitude(strides_bytes[d]); };
  std::sort(dimensions.begin(), dimensions.end(),
            [&](std::size_t a, std::size_t b) { return step(a) < step(b); });
  std::uint64_t span = element_size;
  for (const std::size_t d : dimensions) {
    if (step(d) < span) {
      return InvalidArgument(
          "the strides make elements overlap: the stride of dimension ", d, " is ",
          strides_bytes[d], ", expected at least ", span,
          " or at most its negative, the span of the dimensions with smaller strides");
    }
    span += (box.extent[d] - 1) * step(d);
  }
  return {};
}

}  // namespace

std::shared_ptr<const StridedRegion> StridedRegion::Dense(const Region& region,
                                                          std::uint32_t element_size) {
  return std::make_shared<const StridedRegion>(
      StridedRegion{.region = region,
                    .strides_bytes = layout::DenseStridesBytes(region.box.extent, element_size)});
}

Region Destination::Spanned() const {
  Box box = region().box;
  for (std::size_t d = 0; d < steps().size(); ++d)
    box.extent[d] = (box.extent[d] - 1) * steps()[d] + 1;
  return Region::Of(std::move(box));
}

Destination Destination::Make(const MutableMemoryView& view, const Region& region,
                              std::uint32_t element_size) {
  if (view.is_dense()) return Make(view, StridedRegion::Dense(region, element_size), element_size);
  auto place = std::make_shared<const StridedRegion>(
      StridedRegion{.region = region, .strides_bytes = view.strides_bytes});
  Destination destination = Make(view, std::move(place), element_size);
  destination.shift_bytes = static_cast<std::int64_t>(view.origin_bytes);
  return destination;
}

Destination Destination::Make(const MutableMemoryView& view,
                              std::shared_ptr<const StridedRegion> dense,
                              std::uint32_t element_size) {
  static std::byte no_memory{};
  // Modulo 2^64, as all offsets of copies: the sum is in the caller's memory.
  const std::uint64_t origin = view.is_plan_only ? view.origin_bytes : 0;
  const std::uint64_t shift = origin - dense->region.run.begin * element_size;
  return {.data = view.is_plan_only ? &no_memory : view.data,
          .place = std::move(dense),
          .element_size = element_size,
          .device = view.device,
          .stream = view.stream,
          .is_plan_only = view.is_plan_only,
          .shift_bytes = static_cast<std::int64_t>(shift)};
}

Status CheckDestination(const MutableMemoryView& view, const Region& region, DType dtype,
                        std::uint32_t element_size) {
  if (view.is_plan_only) return {};
  SEALPOINT_RETURN_IF_ERROR(
      layout::CheckView(view, region, dtype, element_size).Prefixed("destination"));
  if (view.is_dense()) return {};
  const Box& box = region.box;
  if (region.run != Run{0, layout::BoxElementCount(box)}) {
    return InvalidArgument("strides need a whole box, not ", region.ToString());
  }
  return CheckApart(box, view.strides_bytes, element_size);
}

}  // namespace sealpoint::internal::load
