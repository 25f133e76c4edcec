// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_DESTINATION_OVERLAP_H_
#define SEALPOINT_READERS_LOAD_DESTINATION_OVERLAP_H_

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "readers/load/plan_builder.h"

namespace sealpoint::internal::load {

// Two of these destinations that share a byte of memory, by their numbers; nothing if none do.
// Absent destinations and those without memory take no bytes.
//
// Destinations whose address ranges interleave are told apart if they are boxes of one array, as
// columns of a matrix are: by strides, each a place in the array's dimensions. Those that are not
// (such as every row and every second row) count as overlapping. O(n log n) for n destinations,
// unless many of them interleave in every dimension.
std::optional<std::pair<std::size_t, std::size_t>> FindOverlap(
    std::span<const std::optional<Destination>* const> destinations);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_DESTINATION_OVERLAP_H_
