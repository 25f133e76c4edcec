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

// The types below are plain values; concurrent reads are safe.

// Extents of a tensor, outermost dimension first; empty for a 0-d tensor (one element). A tensor
// with an extent of 0 is legal and empty; its regions have no elements.
using Shape = std::vector<std::uint64_t>;

// An axis-aligned part of a tensor. In each dimension, the box covers the half-open interval
// [offset, offset + extent), in elements. Both vectors have one entry per dimension of the tensor.
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

// A box and a contiguous run of the box's elements in row-major order. If the run has all elements
// of the box, the region is a plain box. With ZeRO, FSDP1 and the Megatron distributed optimizer,
// ranks hold runs of a tensor-parallel box. A box converts implicitly to the region with all
// elements of the box.
struct SEALPOINT_EXPORT Region {
  Box box{};
  Run run{};

  // An empty region of a 0-d tensor. Every function that expects a region refuses this value.
  Region() = default;
  Region(Box full_box);  // NOLINT(google-explicit-constructor): as Of
  Region(Box part_of, Run elements) : box(std::move(part_of)), run(elements) {}

  // Returns the region that covers a whole tensor of this shape. Precondition: the element count
  // fits in 64 bits. Functions that accept regions from callers check this precondition. Never
  // fails.
  static Region Whole(const Shape& shape);
  // Returns the region that covers all of this box. The precondition is the same as for Whole.
  static Region Of(Box box);

  // Returns the number of elements in the run. Never fails.
  std::uint64_t element_count() const { return run.end - run.begin; }
  // Returns "[0:4, 8:16]" for a plain box, "[0:4, 8:16] run 5:20" for a run of a box, and "[]" for
  // a 0-d region.
  std::string ToString() const;

  friend auto operator<=>(const Region&, const Region&) = default;
};

// Returns the product of the extents: 1 for a 0-d shape, 0 if any extent is 0. Errors:
// LimitExceeded (the product does not fit in 64 bits).
SEALPOINT_EXPORT Result<std::uint64_t> ElementCount(const Shape& shape);

// Checks a region of a tensor. Any values are safe to check, including hostile values. Returns true
// if the region has elements, and false if it is valid but empty (an extent or the size of the run
// is 0). An empty region is neither stored nor loaded, so ranks and tensors without elements need
// no special case. Errors: InvalidArgument (the box does not have the ndim of the shape or is not
// within the shape, the run is not within the box, or the region of a 0-d tensor is Region()),
// LimitExceeded (the element count of the shape does not fit in 64 bits).
SEALPOINT_EXPORT Result<bool> HasElements(const Shape& shape, const Region& region);

// Like HasElements, but an empty region is InvalidArgument.
SEALPOINT_EXPORT Status CheckRegion(const Shape& shape, const Region& region);

// Returns for example "[8192, 8192]".
SEALPOINT_EXPORT std::string ShapeToString(const Shape& shape);

}  // namespace sealpoint

#endif  // SEALPOINT_REGION_H_
