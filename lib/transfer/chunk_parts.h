// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_CHUNK_PARTS_H_
#define SEALPOINT_LIB_TRANSFER_CHUNK_PARTS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/base/wire.h"
#include "lib/transfer/delivery_plan.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// The raw bytes of a chunk that one rank requests from another: ascending byte ranges that do not
// touch. Equal ranges at equal distances, as from rows, columns and blocks of a matrix, are stored
// as one pattern. The whole chunk is requested if parts would save little, or if their description
// would be too long.
class ChunkParts {
 public:
  // All of a chunk of this size.
  explicit ChunkParts(std::uint64_t raw_size);
  // The bytes that the copies of a chunk of this plan use.
  static ChunkParts NeededBy(const DeliveryPlan& plan, const PlanChunk& chunk);

  std::uint64_t size_bytes() const;

  // Copies these parts of `raw` to `packed`, without gaps. Precondition: `packed` has size_bytes().
  void Pack(ByteSpan raw, MutableByteSpan packed) const;
  // The reverse of Pack; leaves the other bytes of `raw` as they are. Precondition: `packed` has
  // size_bytes().
  void Unpack(ByteSpan packed, MutableByteSpan raw) const;

  void Encode(WireWriter& out) const;
  // Errors: Comm (not parts of a chunk of this size).
  static Result<ChunkParts> Decode(WireReader& in, std::uint64_t raw_size);

  friend bool operator==(const ChunkParts&, const ChunkParts&) = default;

 private:
  // Byte ranges of equal length at equal distances.
  struct Pattern {
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    std::uint64_t count = 1;
    std::uint64_t distance = 0;  // from begin to begin; 0 if count is 1
    friend bool operator==(const Pattern&, const Pattern&) = default;
  };

  explicit ChunkParts(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
  template <typename Visit>
  void ForEachRange(const Visit& visit) const;
  void Append(std::uint64_t begin, std::uint64_t length);

  std::vector<Pattern> patterns_;
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_CHUNK_PARTS_H_
