// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_REPACK_PIECES_H_
#define SEALPOINT_LIB_REPACK_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "lib/repack/tasks.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::repack {

// Contents of a future shard: elements of one tensor that fit into the memory of a thread.
struct ShardPiece {
  std::size_t task = 0;
  Region region{};
  std::uint64_t raw_bytes = 0;
  std::uint64_t memory_bytes = 0;  // a multiple of kPieceAlignmentBytes
};

inline constexpr std::uint64_t kPieceAlignmentBytes = 64;

struct PieceLimits {
  std::uint64_t memory_bytes = 0;  // of a piece while it is worked upon
  std::uint64_t raw_bytes = 0;     // as it is stored
};

// The pieces of all tensors with elements, in order. A tensor within the limits is one piece. For a
// larger one, each shard of its first source is cut where chunks of both end, if such a piece fits,
// so that no chunk is read twice.
Result<std::vector<ShardPiece>> CutIntoPieces(const RewriteJob& job, const PieceLimits& limits);

// Cuts them into at most `count` parts of about the same size. Some may be empty.
std::vector<std::span<const ShardPiece>> Divide(std::span<const ShardPiece> pieces,
                                                std::size_t count);

// How many of the first of these fit into the memory together; at least one if there is one.
std::size_t CountThatFit(std::span<const ShardPiece> pieces, std::uint64_t memory_bytes);

}  // namespace sealpoint::internal::repack

#endif  // SEALPOINT_LIB_REPACK_PIECES_H_
