// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_SLOT_FACTS_H_
#define SEALPOINT_LIB_WRITER_SLOT_FACTS_H_

#include <string_view>

#include "sealpoint/declaration.h"

namespace sealpoint::internal {

// Adds the slot to `holders`, those of its list of replicas; leaves to the caller what depends on
// other slots. Precondition: valid, as Declaration::Add finds it.
SlotFacts FactsOf(const HeldTensor& held, HolderFacts& holders);

// Corners of the boxes that a region consists of, before those of dimensions that no box divides
// are left out (lib/layout/tiling.h).
std::uint64_t CornerCountOf(const Region& region);

// The region of a slot; the whole tensor where none was given. Precondition: not an empty tensor.
Region HeldRegionOf(const HeldTensor& held);

// The hash of a name of an object, which no tensor's name has.
SlotFacts::Hash HashObjectName(std::string_view name);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_SLOT_FACTS_H_
