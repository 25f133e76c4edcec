// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_CODEC_CHANGE_LIST_H_
#define SEALPOINT_LIB_CODEC_CHANGE_LIST_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::codec {

// Change lists (spec/delta.md, section 2): which elements of a chunk differ from the base bytes,
// and by what. Preconditions of all functions: the element size is a power of two from 1 to 256,
// and the bytes are whole elements, at most 2^32 - 1.

// The least and the greatest size of a list that is not empty.
std::pair<std::uint64_t, std::uint64_t> ChangeListSizes(std::size_t raw_size_bytes,
                                                        std::uint32_t element_size);

// Memory in bytes that MakeChangeList needs.
std::size_t ChangeListScratchSize(std::size_t raw_size_bytes, std::uint32_t element_size);

// Called with blocks of a chunk, one after the other, while they are in the cache.
using VisitBlock = std::function<void(ByteSpan block)>;

// A list in the scratch memory of its maker.
struct ChangeList {
  ByteSpan bytes{};          // empty: nothing changed
  std::size_t gaps_end = 0;  // position behind the gaps; the changes follow
  std::size_t entry_count = 0;
};

// Precondition: equal sizes of `raw` and `base`. `visit` gets the blocks of `raw`.
ChangeList MakeChangeList(std::uint32_t element_size, ByteSpan raw, ByteSpan base,
                          MutableByteSpan scratch, const VisitBlock& visit);

// Makes the changes in `bytes`, which holds the base bytes; `visit` gets its blocks once they are
// changed. Never writes beyond it; after an error its content is unspecified. An empty list changes
// nothing. Errors: Corrupt (R-DLT-07).
Status ApplyChangeList(std::uint32_t element_size, ByteSpan list, MutableByteSpan bytes,
                       const VisitBlock& visit);

}  // namespace sealpoint::internal::codec

#endif  // SEALPOINT_LIB_CODEC_CHANGE_LIST_H_
