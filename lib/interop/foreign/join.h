// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_INTEROP_FOREIGN_JOIN_H_
#define SEALPOINT_LIB_INTEROP_FOREIGN_JOIN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sealpoint/interop.h"

// Tensors that model-parallel ranks have parts of, or all of which they have whole.

namespace sealpoint::internal::foreign {

// The dimension along which the ranks divide a tensor.
enum class Cut : std::uint8_t { kRows = 0, kColumns = 1, kNone, kUnknown };

// Whether two tensors have the same bytes: a CRC-32 of each says so.
inline bool AreSame(const ForeignTensor& a, const ForeignTensor& b) {
  return std::ranges::equal(a.parts, b.parts, [](const ForeignPart& x, const ForeignPart& y) {
    return x.crc && x.crc == y.crc && x.entry_size == y.entry_size && x.begin == y.begin &&
           x.strides == y.strides;
  });
}

// Adds the part of a rank to a tensor, from an index of this dimension on.
inline void AddShard(const ForeignTensor& shard, std::size_t dim, std::uint64_t begin,
                     ForeignTensor& joined) {
  for (ForeignPart part : shard.parts) {
    part.box.offset[dim] += begin;
    joined.parts.push_back(std::move(part));
  }
}

}  // namespace sealpoint::internal::foreign

#endif  // SEALPOINT_LIB_INTEROP_FOREIGN_JOIN_H_
