// SPDX-License-Identifier: Apache-2.0
#include "readers/load/destination.h"

#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/layout/box_copy.h"
#include "lib/layout/region_algebra.h"
#include "lib/layout/view_checks.h"

namespace sealpoint::internal {

std::shared_ptr<const StridedRegion> StridedRegion::Dense(const Region& region,
                                                          std::uint32_t element_size) {
  return std::make_shared<const StridedRegion>(StridedRegion{
      .region = region, .strides_bytes = DenseStridesBytes(region.box.extent, element_size)});
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
  // Modulo 2^64, as all offsets of copies: the sum lies in the caller's memory.
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
  SEALPOINT_RETURN_IF_ERROR(CheckView(view, region, dtype, element_size).Prefixed("destination"));
  if (view.is_dense()) return {};
  const Box& box = region.box;
  if (region.run != Run{0, BoxElementCount(box)}) {
    return InvalidArgument("strides need a whole box, not ", region.ToString());
  }
  for (std::size_t d = 0; d < box.extent.size(); ++d) {
    if (box.extent[d] > 1 && Magnitude(view.strides_bytes[d]) < element_size) {
      return InvalidArgument("stride ", view.strides_bytes[d], " of dimension ", d,
                             " makes elements of ", element_size, " bytes overlap");
    }
  }
  return {};
}

}  // namespace sealpoint::internal
