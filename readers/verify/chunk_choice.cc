// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/chunk_choice.h"

#include <algorithm>

#include "lib/base/endian.h"
#include "lib/format/constants.h"

namespace sealpoint::internal::verify {

std::uint32_t PartOf(const metadata::BlobPin& pin, std::uint64_t offset, std::uint32_t count) {
  // The first `longer` ranges are a byte longer than the others.
  const std::uint64_t area = pin.table_offset - format::kHeaderSize;
  const std::uint64_t at = offset - format::kHeaderSize;
  const std::uint64_t width = area / count;
  const std::uint64_t longer = area % count;
  const std::uint64_t longer_end = longer * (width + 1);
  const std::uint64_t range = at < longer_end
                                  ? at / (width + 1)
                                  : longer + (at - longer_end) / std::max<std::uint64_t>(width, 1);
  return static_cast<std::uint32_t>((range + LoadLe<std::uint64_t>(pin.id.bytes, 0) % count) %
                                    count);
}

ChunkChoice::Kind ChunkChoice::KindOf(const WalkedChunk& chunk) const {
  if (!part_.is_whole() &&
      PartOf(blob_.pin, chunk.record.offset, part_.count) != part_.number - 1) {
    return Kind::kOfAnotherPart;
  }
  return known_.Contains(chunk.begin(), chunk.end()) ? Kind::kKnown : Kind::kToRead;
}

}  // namespace sealpoint::internal::verify
