// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/reading_order.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {

std::vector<BlobBytes> UnionOf(std::vector<BlobBytes> ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::vector<BlobBytes> joined;
  for (const BlobBytes& range : ranges) {
    if (range.begin == range.end) continue;
    const bool touches =
        !joined.empty() && joined.back().blob == range.blob && range.begin <= joined.back().end;
    if (touches) {
      joined.back().end = std::max(joined.back().end, range.end);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

ReadingOrder::ReadingOrder(const std::vector<BlobBytes>& wanted, std::uint64_t piece_bytes)
    : piece_bytes_(piece_bytes) {
  std::uint64_t rounds = 0;
  for (const BlobBytes& bytes : wanted) {
    if (blobs_.empty() || blobs_.back().blob != bytes.blob) blobs_.push_back({.blob = bytes.blob});
    stretches_.push_back({.bytes = bytes, .before = blobs_.back().size});
    blobs_.back().size += bytes.end - bytes.begin;
    size_bytes_ += bytes.end - bytes.begin;
  }
  std::size_t pieces = 0;
  for (Blob& blob : blobs_) {
    blob.first_piece = pieces;
    pieces += DivideRoundUp(blob.size, piece_bytes_);
    rounds = std::max(rounds, DivideRoundUp(blob.size, piece_bytes_));
  }
  piece_positions_.resize(pieces);
  // Blobs that still have a piece in this round; the time is that of the pieces.
  std::vector<const Blob*> active;
  for (const Blob& blob : blobs_) active.push_back(&blob);
  std::uint64_t position = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::erase_if(active, [&](const Blob* blob) { return blob->size <= round * piece_bytes_; });
    for (const Blob* blob : active) {
      piece_positions_[blob->first_piece + round] = position;
      position += std::min(piece_bytes_, blob->size - round * piece_bytes_);
    }
  }
}

std::uint64_t ReadingOrder::PositionOf(std::uint32_t blob, std::uint64_t offset) const {
  const auto behind = std::upper_bound(
      stretches_.begin(), stretches_.end(), BlobBytes{blob, offset, ~0ull},
      [](const BlobBytes& at, const Stretch& stretch) { return at < stretch.bytes; });
  SEALPOINT_CHECK(behind != stretches_.begin());
  const Stretch& stretch = *std::prev(behind);
  SEALPOINT_CHECK(stretch.bytes.blob == blob && offset < stretch.bytes.end);
  const auto of_blob =
      std::lower_bound(blobs_.begin(), blobs_.end(), blob,
                       [](const Blob& one, std::uint32_t number) { return one.blob < number; });
  const std::uint64_t in_blob = stretch.before + (offset - stretch.bytes.begin);
  return piece_positions_[of_blob->first_piece + in_blob / piece_bytes_] + in_blob % piece_bytes_;
}

int ReadingWindow::ReaderOf(std::uint64_t position, int rank_count) const {
  const std::uint64_t part = DivideRoundUp(end - begin, static_cast<std::uint64_t>(rank_count));
  return static_cast<int>((position - begin) / part);
}

}  // namespace sealpoint::internal
