// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/staged_copy.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace sealpoint::internal::transfer {
namespace {

// Offsets are computed modulo 2^64, as in lib/layout.
std::uint64_t Unsigned(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t Signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }
std::uint64_t DistanceOf(std::int64_t stride) {
  return stride < 0 ? 0 - Unsigned(stride) : Unsigned(stride);
}

// The dimensions by the distance of their elements in the target, the farthest first.
std::vector<std::size_t> TargetOrder(const layout::StridedCopy& copy) {
  std::vector<std::size_t> order(copy.extent.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const std::uint64_t distance_a = DistanceOf(copy.target_stride_bytes[a]);
    const std::uint64_t distance_b = DistanceOf(copy.target_stride_bytes[b]);
    return distance_a != distance_b ? distance_a > distance_b : a < b;
  });
  return order;
}

// Appends the parts of `copy`, whose dimensions before `d` have one index each. `index_bytes` is
// what one index of dimension `d` takes of the target.
void CutFrom(const layout::StridedCopy& copy, std::size_t d, std::uint64_t index_bytes,
             std::uint64_t size_max_bytes, std::vector<layout::StridedCopy>& parts) {
  const bool is_small = d == copy.extent.size() || index_bytes * copy.extent[d] <= size_max_bytes;
  if (is_small) {
    parts.push_back(copy);
    return;
  }
  const std::uint64_t step = std::max<std::uint64_t>(1, size_max_bytes / index_bytes);
  for (std::uint64_t begin = 0; begin < copy.extent[d]; begin += step) {
    layout::StridedCopy part = copy;
    part.extent[d] = std::min(step, copy.extent[d] - begin);
    part.source_offset_bytes =
        Signed(Unsigned(copy.source_offset_bytes) + begin * Unsigned(copy.source_stride_bytes[d]));
    part.target_offset_bytes =
        Signed(Unsigned(copy.target_offset_bytes) + begin * Unsigned(copy.target_stride_bytes[d]));
    const std::uint64_t inner = d + 1 < copy.extent.size() ? copy.extent[d + 1] : 1;
    CutFrom(part, index_bytes > size_max_bytes ? d + 1 : copy.extent.size(), index_bytes / inner,
            size_max_bytes, parts);
  }
}

}  // namespace

StagedCopy StageCopy(const layout::StridedCopy& copy, std::uint64_t target_element_size) {
  StagedCopy staged{.pack = copy,
                    .place = {.extent = {},
                              .source_stride_bytes = {},
                              .target_stride_bytes = {},
                              .element_size = target_element_size}};
  const std::vector<std::size_t> order = TargetOrder(copy);
  std::uint64_t pack_offset = 0;
  std::uint64_t place_offset = Unsigned(copy.target_offset_bytes);
  std::uint64_t stride = target_element_size;  // in staging
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t d = order[i];
    const std::int64_t target_stride = copy.target_stride_bytes[d];
    staged.pack.target_stride_bytes[d] = Signed(stride);
    // What runs backwards in the target begins at its last element.
    if (target_stride < 0) {
      staged.pack.target_stride_bytes[d] = Signed(0 - stride);
      pack_offset += (copy.extent[d] - 1) * stride;
      place_offset += (copy.extent[d] - 1) * Unsigned(target_stride);
    }
    stride *= copy.extent[d];
  }
  for (const std::size_t d : order) {
    staged.place.extent.push_back(copy.extent[d]);
    staged.place.source_stride_bytes.push_back(
        Signed(DistanceOf(staged.pack.target_stride_bytes[d])));
    staged.place.target_stride_bytes.push_back(Signed(DistanceOf(copy.target_stride_bytes[d])));
  }
  staged.pack.target_offset_bytes = Signed(pack_offset);
  staged.place.target_offset_bytes = Signed(place_offset);
  staged.place.Normalize();
  return staged;
}

std::vector<layout::StridedCopy> CutCopy(layout::StridedCopy copy,
                                         std::uint64_t target_element_size,
                                         std::uint64_t size_max_bytes) {
  std::uint64_t element_size = target_element_size == 0 ? copy.element_size : target_element_size;
  if (target_element_size == 0 && copy.element_size > size_max_bytes) {
    copy.extent.push_back(copy.element_size);
    copy.source_stride_bytes.push_back(1);
    copy.target_stride_bytes.push_back(1);
    copy.element_size = element_size = 1;
  }
  std::uint64_t index_bytes = element_size;
  for (std::size_t d = 1; d < copy.extent.size(); ++d) index_bytes *= copy.extent[d];
  std::vector<layout::StridedCopy> parts;
  CutFrom(copy, 0, index_bytes, size_max_bytes, parts);
  return parts;
}

}  // namespace sealpoint::internal::transfer
