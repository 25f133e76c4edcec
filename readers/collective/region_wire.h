// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_REGION_WIRE_H_
#define SEALPOINT_READERS_COLLECTIVE_REGION_WIRE_H_

#include <cstdint>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/region.h"

// Regions of tensors in messages to other ranks.

namespace sealpoint::internal::collective {

inline void PutRegion(WireWriter& out, const Region& region) {
  out.Put(region.box.offset);
  out.Put(region.box.extent);
  out.Put(region.run.begin);
  out.Put(region.run.end);
}

// Errors: Comm (not a region of a tensor of this shape).
inline Result<Region> TakeRegion(WireReader& in, const Shape& shape) {
  Region region;
  SEALPOINT_ASSIGN_OR_RETURN(region.box.offset, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(region.box.extent, in.Numbers());
  SEALPOINT_ASSIGN_OR_RETURN(region.run.begin, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(region.run.end, in.Number());
  if (!CheckRegion(shape, region).ok()) {
    return MakeError(Code::kComm, "another rank requests a region outside of its tensor");
  }
  return region;
}

// The number of a tensor. Errors: Comm (not in the index).
inline Result<std::uint64_t> TakeTensor(WireReader& in, const metadata::Metadata& index) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t tensor, in.Number());
  if (tensor < index.tensor_count()) return tensor;
  return MakeError(Code::kComm, "another rank requests tensor ", tensor, " of ",
                   index.tensor_count());
}

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_REGION_WIRE_H_
