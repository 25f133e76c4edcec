// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_REGION_H_
#define SEALPOINT_REGION_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/export.h"
#include "sealpoint/status.h"

namespace sealpoint {

// Plain values; concurrent reads are safe.

// Extents of a tensor, outermost dimension first; empty for a 0-d tensor (one element). A tensor
// with an extent of 0 is legal and empty; its regions have no elements.
using Shape = std::vector<std::uint64_t>;

// An axis-aligned part of a tensor: per dimension the half-open interval
// [offset, offset + extent), in elements. Both vectors have the tensor's ndim entries.
struct Box {
  std::vector<std::uint64_t> offset{};
  std::vector<std::uint64_t> extent{};
  friend auto operator<=>(const Box&, const Box&) = default;
};

// A half-open range [begin, end) of the row-major element numbers of a box.
struct Run {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  friend auto operator<=>(const Run&, const Run&) = default;
};

// A box and a contiguous run of its row-major elements. A plain box is its full run. ZeRO, FSDP1
// and the Megatron distributed optimizer hold runs of a tensor-parallel box. A box converts
// implicitly to a region with its full run.
struct SEALPOINT_EXPORT Region {
  Box box{};
  Run run{};

  // No elements, of a 0-d tensor; refused wherever a region is expected.
  Region() = default;
  Region(Box full_box);  // NOLINT(google-explicit-constructor): as Of
  Region(Box part_of, Run elements) : box(std::move(part_of)), run(elements) {}

  // The whole tensor of this shape. Precondition: the element count fits 64 bits (checked by the
  // functions that take regions from callers). Never fails.
  static Region Whole(const Shape& shape);
  // The full run of this box; precondition as above.
  static Region Of(Box box);

  // Elements in the run. Never fails.
  std::uint64_t element_count() const { return run.end - run.begin; }
  // "[0:4, 8:16]"; a run of a box is "[0:4, 8:16] run 5:20"; 0-d is "[]".
  std::string ToString() const;

  friend auto operator<=>(const Region&, const Region&) = default;
};

// Product of the extents; 1 for 0-d, 0 if any extent is 0. Errors: LimitExceeded if it does not
// fit 64 bits.
SEALPOINT_EXPORT Result<std::uint64_t> ElementCount(const Shape& shape);

// Checks a region of a tensor. Accepts any values, including hostile ones. Returns false for a
// valid region without elements, with an extent or run of 0. Such a region is neither held nor
// loaded, so ranks and tensors without elements need no special case. Errors: InvalidArgument
// unless the box has the shape's ndim and is within the shape, and the run is within the box; also
// for Region() of a 0-d tensor; LimitExceeded if the shape's element count does not fit 64 bits.
SEALPOINT_EXPORT Result<bool> HasElements(const Shape& shape, const Region& region);

// Like HasElements, but a region without elements is InvalidArgument.
SEALPOINT_EXPORT Status CheckRegion(const Shape& shape, const Region& region);

// "[8192, 8192]".
SEALPOINT_EXPORT std::string ShapeToString(const Shape& shape);

}  // namespace sealpoint

#endif  // SEALPOINT_REGION_H_
