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

// Which elements of a tensor none of the regions holds; the regions may overlap. Each region
// cuts what is left of the tensor into more boxes, so that the time grows with the square of their
// number at worst. Preconditions: the regions passed CheckRegion for `shape`.
Uncovered FindUncovered(const Shape& shape, const std::vector<Region>& regions);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_COVERAGE_H_
