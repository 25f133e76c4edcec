// SPDX-License-Identifier: Apache-2.0
#include "lib/layout/cuts.h"

#include <algorithm>
#include <cstddef>

#include "lib/layout/box_copy.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::layout {
namespace {

void AppendCuts(const Box& box, const std::vector<std::uint64_t>& cuts, std::vector<Box>& out) {
  Box piece = box;
  // A cut may be any number: the next multiple of it need not fit 64 bits.
  const auto begin_at = [&](std::size_t d, std::uint64_t offset) {
    const std::uint64_t left = box.offset[d] + box.extent[d] - offset;
    piece.offset[d] = offset;
    piece.extent[d] = cuts[d] == 0 ? left : std::min(left, cuts[d] - offset % cuts[d]);
  };
  for (std::size_t d = 0; d < cuts.size(); ++d) begin_at(d, box.offset[d]);
  for (;;) {
    out.push_back(piece);
    std::size_t d = cuts.size();
    for (; d > 0; --d) {
      const std::uint64_t next = piece.offset[d - 1] + piece.extent[d - 1];
      const bool is_inside = next < box.offset[d - 1] + box.extent[d - 1];
      begin_at(d - 1, is_inside ? next : box.offset[d - 1]);
      if (is_inside) break;
    }
    if (d == 0) return;
  }
}

bool IsContiguous(const std::vector<std::int64_t>& strides_bytes, const Box& box,
                  std::uint32_t element_size) {
  const std::vector<std::int64_t> dense = DenseStridesBytes(box.extent, element_size);
  for (std::size_t d = 0; d < dense.size(); ++d) {
    if (box.extent[d] > 1 && strides_bytes[d] != dense[d]) return false;
  }
  return true;
}

}  // namespace

std::uint64_t CountCutBoxes(const Region& region, const std::vector<std::uint64_t>& cuts) {
  std::uint64_t sum = 0;
  for (const Box& box : DecomposeRun(region)) {
    std::uint64_t count = 1;
    for (std::size_t d = 0; d < cuts.size(); ++d) {
      if (cuts[d] == 0) continue;
      const std::uint64_t last = box.offset[d] + box.extent[d] - 1;
      count *= last / cuts[d] - box.offset[d] / cuts[d] + 1;
    }
    sum += count;
  }
  return sum;
}

std::vector<Box> CutRegion(const Region& region, const std::vector<std::uint64_t>& cuts) {
  std::vector<Box> boxes;
  for (const Box& box : DecomposeRun(region)) AppendCuts(box, cuts, boxes);
  return boxes;
}

// Offsets are computed modulo 2^64: the view of a run begins behind the first element of its box.
MemoryView ViewOfBox(const MemoryView& view, const Region& held, const Box& part,
                     std::uint32_t element_size) {
  MemoryView part_view = view;
  std::uint64_t at = view.origin_bytes;
  if (view.is_dense()) {
    part_view.strides_bytes = DenseStridesBytes(held.box.extent, element_size);
    at = 0 - held.run.begin * element_size;
  }
  for (std::size_t d = 0; d < part.offset.size(); ++d) {
    at += (part.offset[d] - held.box.offset[d]) *
          static_cast<std::uint64_t>(part_view.strides_bytes[d]);
  }
  part_view.origin_bytes = at;
  if (!IsContiguous(part_view.strides_bytes, part, element_size)) return part_view;
  part_view.data += at;
  part_view.size_bytes = BoxElementCount(part) * element_size;
  part_view.strides_bytes.clear();
  part_view.origin_bytes = 0;
  return part_view;
}

}  // namespace sealpoint::internal::layout
