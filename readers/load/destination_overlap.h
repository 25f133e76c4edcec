// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_DESTINATION_OVERLAP_H_
#define SEALPOINT_READERS_LOAD_DESTINATION_OVERLAP_H_

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "readers/load/plan_builder.h"

namespace sealpoint::internal::load {

// Two destinations that share a byte of memory, by number; empty if there are none. Absent
// destinations and destinations without memory use no bytes.
//
// Destinations with interleaving address ranges are distinguished if they are boxes of one array,
// such as columns of a matrix, by converting each stride into a dimension of the array. Others
// (such as every row and every second row) count as overlapping. O(n log n) for n destinations,
// unless many of them interleave in every dimension.
std::optional<std::pair<std::size_t, std::size_t>> FindOverlap(
    std::span<const std::optional<Destination>* const> destinations);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_DESTINATION_OVERLAP_H_
