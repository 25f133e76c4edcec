// SPDX-License-Identifier: Apache-2.0
#include "lib/base/errors.h"
#include "lib/layout/region_algebra.h"
#include "readers/load/plan_builder.h"

namespace sealpoint::internal {
namespace {

std::uint64_t Magnitude(std::int64_t stride) {
  const auto bits = static_cast<std::uint64_t>(stride);
  return stride < 0 ? 0 - bits : bits;
}

}  // namespace

Destination Destination::Make(const MutableMemoryView& view, const Region& region,
                              std::uint32_t element_size) {
  Destination destination{.data = view.data,
                          .region = region,
                          .strides_bytes = view.strides_bytes,
                          .device = view.device,
                          .stream = view.stream,
                          .shift_bytes = 0};
  if (view.strides_bytes.empty()) {
    destination.strides_bytes = DenseStridesBytes(region.box.extent, element_size);
    // Modulo 2^64, as all offsets of copies: the sum lies in the caller's memory.
    destination.shift_bytes = static_cast<std::int64_t>(0 - region.run.begin * element_size);
  }
  return destination;
}

Status CheckDestination(const MutableMemoryView& view, const Region& region,
                        std::uint32_t element_size) {
  if (view.device < kHostDevice) {
    return InvalidArgument("a destination in memory of device ", view.device, ", which is none");
  }
  if (view.data == nullptr) return InvalidArgument("the destination is null");
  if (view.strides_bytes.empty()) return {};
  const Box& box = region.box;
  if (view.strides_bytes.size() != box.extent.size()) {
    return InvalidArgument("a destination with ", view.strides_bytes.size(),
                           " strides for a region of ", box.extent.size(), " dimensions");
  }
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
