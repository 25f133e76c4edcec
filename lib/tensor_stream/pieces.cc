// SPDX-License-Identifier: Apache-2.0
#include "lib/tensor_stream/pieces.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/layout/region_algebra.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::tensor_stream {
namespace {

constexpr std::size_t kPiecesAtOnceMax = 1024;
// Less is not worth a request, more not the memory.
constexpr std::uint64_t kRunMinBytes = 8 * kMiB;
constexpr std::uint64_t kRunMaxBytes = 64 * kMiB;

// A plane begins where any element may. The system copies a large one to the beginning of a page
// three times faster than to other addresses.
constexpr std::uint64_t kElementAlignmentBytes = 64;
constexpr std::uint64_t kLargePlaneBytes = kMiB;

// A run of rows touches a chunk of every shard beside one another, and each is read whole: also a
// chunk that is larger than a run.
std::uint64_t RunBytes(const TensorInfo& tensor) {
  const std::uint64_t most = std::max(kRunMaxBytes, tensor.chunk_size_bytes);
  const std::uint64_t shards = std::min(tensor.shard_count, most / tensor.chunk_size_bytes);
  return std::clamp(tensor.chunk_size_bytes * shards, kRunMinBytes, most);
}

// Appends the region in its order, `step` elements at a time.
void AppendSteps(const ElementUse& use, const Region& region, std::uint64_t step,
                 std::vector<Piece>& pieces) {
  const std::uint64_t count = region.element_count();
  for (std::uint64_t begin = 0; begin < count; begin += std::min(step, count - begin)) {
    const std::uint64_t size = std::min(step, count - begin);
    const std::uint64_t held_bytes = size * use.held_size;
    const bool is_large = held_bytes >= kLargePlaneBytes;
    pieces.push_back({.tensor = use.tensor,
                      .region = layout::SubRun(region, begin, begin + size),
                      .raw_bytes = size * use.stored_size,
                      .held_bytes = held_bytes,
                      .plane_bytes = AlignUp(
                          held_bytes, is_large ? kDirectIoAlignmentBytes : kElementAlignmentBytes),
                      .plane_count = use.plane_count});
  }
}

}  // namespace

std::uint64_t RawBytes(std::span<const Piece> pieces) {
  std::uint64_t size = 0;
  for (const Piece& piece : pieces) size += piece.raw_bytes;
  return size;
}

void AppendRuns(std::size_t number, const TensorInfo& tensor, const Region& region,
                std::size_t plane_count, std::vector<Piece>& pieces) {
  // Element sizes divide the unit (R-IDX-09).
  const std::uint64_t size = tensor.element_size;
  const std::uint64_t step = RunBytes(tensor) / kRunUnitBytes * (kRunUnitBytes / size);
  AppendSteps({number, size, size, plane_count}, region, step, pieces);
}

std::vector<Piece> WholeTensors(const Checkpoint& checkpoint,
                                std::span<const std::size_t> tensors) {
  std::vector<Piece> pieces;
  for (const std::size_t number : tensors) {
    const TensorInfo tensor = checkpoint.tensor(number);
    if (tensor.raw_bytes > 0) AppendRuns(number, tensor, Region::Whole(tensor.shape), 1, pieces);
  }
  return pieces;
}

Status AppendShards(const Checkpoint& checkpoint, const TensorInfo& tensor, const ElementUse& use,
                    std::uint64_t chunk_size_bytes, const PieceLimits& limits,
                    std::vector<Piece>& pieces) {
  const Region whole = Region::Whole(tensor.shape);
  const std::uint64_t fit =
      std::max<std::uint64_t>(std::min(limits.memory_bytes / (use.held_size * use.plane_count),
                                       limits.raw_bytes / use.stored_size),
                              1);
  if (whole.element_count() <= fit) {
    AppendSteps(use, whole, fit, pieces);
    return {};
  }
  // Sizes of chunks and of elements are powers of two, those of chunks the larger ones.
  const std::uint64_t chunk = std::max(tensor.chunk_size_bytes, chunk_size_bytes) / use.stored_size;
  const std::uint64_t step = chunk <= fit ? fit / chunk * chunk : fit;
  return checkpoint.ForEachShard(tensor.name, [&](const ShardInfo& shard) {
    const bool is_one = shard.region.element_count() <= fit;
    AppendSteps(use, shard.region, is_one ? fit : step, pieces);
  });
}

std::vector<Lane> Divide(std::span<const Piece> pieces, std::size_t count) {
  std::uint64_t left = RawBytes(pieces);
  std::vector<Lane> lanes;
  for (std::size_t lane = 0; lane < count; ++lane) {
    const std::uint64_t share = left / (count - lane);
    std::size_t taken = 0;
    std::uint64_t size = 0;
    // What lies across the border belongs to the lane that has more of it.
    while (taken < pieces.size() &&
           (lane + 1 == count || size + pieces[taken].raw_bytes / 2 < share)) {
      size += pieces[taken++].raw_bytes;
    }
    lanes.push_back(pieces.first(taken));
    pieces = pieces.subspan(taken);
    left -= size;
  }
  return lanes;
}

std::size_t CountThatFit(std::span<const Piece> pieces, std::uint64_t memory_bytes) {
  std::size_t count = 0;
  for (std::uint64_t size = 0; count < std::min(pieces.size(), kPiecesAtOnceMax); ++count) {
    size += pieces[count].memory_bytes();
    if (size > memory_bytes && count > 0) break;
  }
  return count;
}

}  // namespace sealpoint::internal::tensor_stream
