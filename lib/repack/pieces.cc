// SPDX-License-Identifier: Apache-2.0
#include "lib/repack/pieces.h"

#include <algorithm>
#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::internal::repack {
namespace {

constexpr std::size_t kPiecesAtOnceMax = 1024;

class Cutter {
 public:
  Cutter(const RewriteJob& job, const PieceLimits& limits) : job_(job), limits_(limits) {}

  Status Cut(std::size_t number) {
    const TensorTask& task = job_.tensors[number];
    const Region whole = Region::Whole(task.spec.shape);
    if (whole.element_count() == 0) return {};
    if (FitsAtOnce(task, whole)) {
      Add(number, whole);
      return {};
    }
    const Checkpoint& source = *job_.sources[task.sources.front()];
    const std::uint64_t step = StepOf(source, task);
    return source.ForEachShard(task.spec.name, [&](const ShardInfo& shard) {
      const Run& run = shard.region.run;
      if (FitsAtOnce(task, shard.region)) return Add(number, shard.region);
      for (std::uint64_t at = run.begin; at < run.end; at += std::min(step, run.end - at)) {
        Add(number, Region(shard.region.box, Run{at, at + std::min(step, run.end - at)}));
      }
    });
  }

  std::vector<ShardPiece> Take() && { return std::move(pieces_); }

 private:
  // In elements; at least one.
  std::uint64_t FitOf(const TensorTask& task) const {
    const std::uint64_t fit = std::min(limits_.memory_bytes / task.memory_per_element(),
                                       limits_.raw_bytes / task.spec.element_size);
    return std::max<std::uint64_t>(fit, 1);
  }
  bool FitsAtOnce(const TensorTask& task, const Region& region) const {
    return region.element_count() <= FitOf(task);
  }

  // In elements.
  std::uint64_t StepOf(const Checkpoint& source, const TensorTask& task) const {
    const std::uint64_t size = task.spec.element_size;
    const std::uint64_t fit = FitOf(task);
    // Sizes of chunks and of elements are powers of two, those of chunks the larger ones.
    const std::uint64_t chunk =
        std::max(source.FindTensor(task.spec.name)->chunk_size_bytes, task.spec.chunk_size_bytes) /
        size;
    return chunk <= fit ? fit / chunk * chunk : fit;
  }

  void Add(std::size_t number, Region region) {
    const TensorTask& task = job_.tensors[number];
    const std::uint64_t count = region.element_count();
    // Each half begins where any element may.
    const std::uint64_t halves = task.memory_per_element() / task.held_size();
    const std::uint64_t half = (count * task.held_size() + kPieceAlignmentBytes - 1) /
                               kPieceAlignmentBytes * kPieceAlignmentBytes;
    pieces_.push_back({number, std::move(region), count * task.spec.element_size, half * halves});
  }

  const RewriteJob& job_;
  const PieceLimits limits_;
  std::vector<ShardPiece> pieces_;
};

}  // namespace

Result<std::vector<ShardPiece>> CutIntoPieces(const RewriteJob& job, const PieceLimits& limits) {
  Cutter cutter(job, limits);
  for (std::size_t i = 0; i < job.tensors.size(); ++i) SEALPOINT_RETURN_IF_ERROR(cutter.Cut(i));
  return std::move(cutter).Take();
}

std::vector<std::span<const ShardPiece>> Divide(std::span<const ShardPiece> pieces,
                                                std::size_t count) {
  std::uint64_t left = 0;
  for (const ShardPiece& piece : pieces) left += piece.raw_bytes;
  std::vector<std::span<const ShardPiece>> parts;
  for (std::size_t part = 0; part < count; ++part) {
    const std::uint64_t share = left / (count - part);
    std::size_t taken = 0;
    std::uint64_t size = 0;
    // What lies across the border belongs to the part that has more of it.
    while (taken < pieces.size() &&
           (part + 1 == count || size + pieces[taken].raw_bytes / 2 < share)) {
      size += pieces[taken++].raw_bytes;
    }
    parts.push_back(pieces.first(taken));
    pieces = pieces.subspan(taken);
    left -= size;
  }
  return parts;
}

std::size_t CountThatFit(std::span<const ShardPiece> pieces, std::uint64_t memory_bytes) {
  std::size_t count = 0;
  for (std::uint64_t size = 0; count < std::min(pieces.size(), kPiecesAtOnceMax); ++count) {
    size += pieces[count].memory_bytes;
    if (size > memory_bytes && count > 0) break;
  }
  return count;
}

}  // namespace sealpoint::internal::repack
