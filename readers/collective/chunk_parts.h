// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_CHUNK_PARTS_H_
#define SEALPOINT_READERS_COLLECTIVE_CHUNK_PARTS_H_

#include <cstdint>
#include <vector>

#include "lib/base/wire.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Which raw bytes of a chunk one rank wants of another: pieces that ascend and do not touch. What
// rows, columns and blocks of a matrix leave of a chunk is one pattern of pieces. Where there is
// little to save, or too much to tell, all of the chunk is wanted.
class ChunkParts {
 public:
  // All of a chunk of this size.
  explicit ChunkParts(std::uint64_t raw_size);
  // What the copies of a chunk of this plan take.
  static ChunkParts WantedOf(const ReadPlanData& plan, const PlanChunk& chunk);

  std::uint64_t size_bytes() const;

  // Appends the pieces of `raw`, one behind the other.
  void Pack(ByteSpan raw, Bytes& out) const;
  // The way back; leaves the other bytes of `raw` as they are. Precondition: `packed` has
  // size_bytes().
  void Unpack(ByteSpan packed, MutableByteSpan raw) const;

  void Encode(WireWriter& out) const;
  // Errors: Comm (no pieces of a chunk of this size).
  static Result<ChunkParts> Decode(WireReader& in, std::uint64_t raw_size);

  friend bool operator==(const ChunkParts&, const ChunkParts&) = default;

 private:
  // Pieces of equal length at equal distances.
  struct Pattern {
    std::uint64_t begin = 0;
    std::uint64_t length = 0;
    std::uint64_t count = 1;
    std::uint64_t distance = 0;  // from begin to begin, where there are several
    friend bool operator==(const Pattern&, const Pattern&) = default;
  };

  explicit ChunkParts(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {}
  template <typename Visit>
  void ForEachPiece(const Visit& visit) const;
  void Append(std::uint64_t begin, std::uint64_t length);

  std::vector<Pattern> patterns_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_CHUNK_PARTS_H_
