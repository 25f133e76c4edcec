// SPDX-License-Identifier: Apache-2.0
#include "lib/compare/pieces.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>

#include "lib/container/resize.h"
#include "lib/layout/region_algebra.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::compare {
namespace {

// Less is not worth a request, more not the memory.
constexpr std::uint64_t kPieceMinBytes = 8 * kMiB;
constexpr std::uint64_t kPieceMaxBytes = 64 * kMiB;

// A piece of rows touches a chunk of every shard beside one another, and each is read whole: also a
// chunk that is larger than a piece.
std::uint64_t PieceBytes(const TensorInfo& info) {
  const std::uint64_t most = std::max(kPieceMaxBytes, info.chunk_size_bytes);
  const std::uint64_t shards = std::min(info.shard_count, most / info.chunk_size_bytes);
  return std::clamp(info.chunk_size_bytes * shards, kPieceMinBytes, most);
}

}  // namespace

void AppendPieces(std::size_t tensor, const TensorInfo& info, const Region& region,
                  std::vector<TensorPiece>& pieces) {
  // Element sizes divide a block (R-IDX-09).
  const std::uint64_t most = PieceBytes(info) / kBlockBytes * (kBlockBytes / info.element_size);
  const std::uint64_t count = region.element_count();
  for (std::uint64_t begin = 0; begin < count; begin += most) {
    const std::uint64_t end = std::min(count, begin + most);
    pieces.push_back({.tensor = tensor,
                      .region = layout::SubRun(region, begin, end),
                      .size_bytes = (end - begin) * info.element_size});
  }
}

std::vector<TensorPiece> PiecesOf(const Checkpoint& checkpoint,
                                  std::span<const std::size_t> tensors) {
  std::vector<TensorPiece> pieces;
  for (const std::size_t tensor : tensors) {
    const TensorInfo info = checkpoint.tensor(tensor);
    if (info.raw_bytes > 0) AppendPieces(tensor, info, Region::Whole(info.shape), pieces);
  }
  return pieces;
}

std::uint64_t BytesOf(std::span<const TensorPiece> pieces) {
  std::uint64_t size = 0;
  for (const TensorPiece& piece : pieces) size += piece.size_bytes;
  return size;
}

std::vector<PieceBatch> BatchesOf(std::span<const TensorPiece> pieces) {
  constexpr std::size_t kCountMax = 1024;
  std::vector<PieceBatch> batches;
  std::uint64_t size = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool fits = !batches.empty() && size + pieces[i].size_bytes <= kPieceMinBytes &&
                      i - batches.back().first < kCountMax;
    if (!fits) {
      batches.emplace_back(i, i);
      size = 0;
    }
    batches.back().second = i + 1;
    size += pieces[i].size_bytes;
  }
  return batches;
}

Status PieceMemory::Reserve(std::uint64_t size_bytes) {
  const std::uint64_t size = size_bytes + kDirectIoAlignmentBytes;
  return container::ResizeBytes(bytes_, std::max<std::uint64_t>(size, bytes_.size()));
}

MutableByteSpan PieceMemory::bytes() {
  void* begin = bytes_.data();
  std::size_t size = bytes_.size();
  std::align(kDirectIoAlignmentBytes, 0, begin, size);
  return {static_cast<std::byte*>(begin), size};
}

Status ReadBatch(const Side& side, std::span<const TensorPiece> pieces, PieceMemory& memory) {
  SEALPOINT_RETURN_IF_ERROR(memory.Reserve(BytesOf(pieces)));
  ReadRequest request;
  std::uint64_t offset = 0;
  for (const TensorPiece& piece : pieces) {
    const MutableByteSpan bytes = memory.bytes().subspan(offset, piece.size_bytes);
    request.Add(side.checkpoint.tensor_name(
                    side.numbers == nullptr ? piece.tensor : (*side.numbers)[piece.tensor]),
                piece.region, MutableMemoryView::Host(bytes));
    offset += piece.size_bytes;
  }
  // Batches are read by as many threads as the caller asked for.
  const Result<LoadReport> report =
      side.checkpoint.Load(request, LoadContract::Partial(), {.threads = 1});
  return report.status();
}

Result<std::vector<std::size_t>> SelectTensors(const Checkpoint& checkpoint,
                                               const ContentOptions& options) {
  if (!options.patterns.empty()) return checkpoint.MatchTensorNumbers(options.patterns);
  std::vector<std::size_t> all(checkpoint.tensor_count());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace sealpoint::internal::compare
