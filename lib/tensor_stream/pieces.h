// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TENSOR_STREAM_PIECES_H_
#define SEALPOINT_LIB_TENSOR_STREAM_PIECES_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::tensor_stream {

// How a caller holds the elements of a tensor in memory: in one plane per value that it needs of
// each element at the same time.
struct ElementUse {
  std::size_t tensor = 0;         // the caller's number of it
  std::uint64_t stored_size = 0;  // bytes of an element in the checkpoint
  std::uint64_t held_size = 0;    // bytes of an element in a plane
  std::size_t plane_count = 1;
};

// Elements of one tensor that are in memory together.
struct Piece {
  std::size_t tensor = 0;
  Region region{};
  std::uint64_t raw_bytes = 0;    // as stored
  std::uint64_t held_bytes = 0;   // in a plane
  std::uint64_t plane_bytes = 0;  // from plane to plane
  std::size_t plane_count = 1;

  std::uint64_t memory_bytes() const { return plane_bytes * plane_count; }
};

std::uint64_t RawBytes(std::span<const Piece> pieces);

// Pieces of AppendRuns, except for the last of a region, have a multiple of this size.
inline constexpr std::uint64_t kRunUnitBytes = 64 * kKiB;

// Appends the region in its order, in runs of 8 to 64 MiB, or of one chunk if that is larger. Each
// plane holds elements as they are stored.
void AppendRuns(std::size_t number, const TensorInfo& tensor, const Region& region,
                std::size_t plane_count, std::vector<Piece>& pieces);

// All elements of these tensors in runs, in one plane.
std::vector<Piece> WholeTensors(const Checkpoint& checkpoint, std::span<const std::size_t> tensors);

struct PieceLimits {
  std::uint64_t memory_bytes = 0;
  std::uint64_t raw_bytes = 0;
};

// Appends the whole tensor, in one piece if it is within the limits, and else by its shards. Larger
// shards are cut where their chunks and chunks of `chunk_size_bytes` end, if such a piece fits, so
// that no chunk is read twice. One element may exceed the limits. Errors: those of ForEachShard.
Status AppendShards(const Checkpoint& checkpoint, const TensorInfo& tensor, const ElementUse& use,
                    std::uint64_t chunk_size_bytes, const PieceLimits& limits,
                    std::vector<Piece>& pieces);

// Pieces that are read in order, by one thread at a time.
using Lane = std::span<const Piece>;

// Cuts them into at most `count` lanes of about the same size. Some may be empty.
std::vector<Lane> Divide(std::span<const Piece> pieces, std::size_t count);

// How many of the first pieces fit into the memory together; at least one if there is one.
std::size_t CountThatFit(std::span<const Piece> pieces, std::uint64_t memory_bytes);

}  // namespace sealpoint::internal::tensor_stream

#endif  // SEALPOINT_LIB_TENSOR_STREAM_PIECES_H_
