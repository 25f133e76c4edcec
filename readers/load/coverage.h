// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_COVERAGE_H_
#define SEALPOINT_READERS_LOAD_COVERAGE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "sealpoint/region.h"

namespace sealpoint::internal::load {

struct Uncovered {
  std::uint64_t count = 0;       // elements
  std::optional<Box> example{};  // some of them, if there are any
};

// Finds the elements of a tensor outside all regions; the regions may overlap. Each region splits
// the remainder of the tensor into more boxes, so the time is quadratic in their number at worst.
// Preconditions: the regions passed CheckRegion for `shape`.
Uncovered FindUncovered(const Shape& shape, const std::vector<Region>& regions);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_COVERAGE_H_
