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

ReadingOrder::ReadingOrder(const std::vector<BlobBytes>& wanted, std::uint64_t stripe_size_bytes)
    : stripe_size_bytes_(stripe_size_bytes) {
  std::uint64_t rounds = 0;
  for (const BlobBytes& bytes : wanted) {
    if (blobs_.empty() || blobs_.back().blob != bytes.blob) blobs_.push_back({.blob = bytes.blob});
    segments_.push_back({.bytes = bytes, .before = blobs_.back().size});
    blobs_.back().size += bytes.end - bytes.begin;
    size_bytes_ += bytes.end - bytes.begin;
  }
  std::size_t stripes = 0;
  for (Blob& blob : blobs_) {
    blob.first_stripe = stripes;
    stripes += DivideRoundUp(blob.size, stripe_size_bytes_);
    rounds = std::max(rounds, DivideRoundUp(blob.size, stripe_size_bytes_));
  }
  stripe_positions_.resize(stripes);
  // Blobs that have a stripe in this round. They are dropped as they end, so that the whole loop
  // takes time linear in the number of stripes, not in rounds times blobs.
  std::vector<const Blob*> active;
  for (const Blob& blob : blobs_) active.push_back(&blob);
  std::uint64_t position = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::erase_if(active,
                  [&](const Blob* blob) { return blob->size <= round * stripe_size_bytes_; });
    for (const Blob* blob : active) {
      stripe_positions_[blob->first_stripe + round] = position;
      position += std::min(stripe_size_bytes_, blob->size - round * stripe_size_bytes_);
    }
  }
}

std::uint64_t ReadingOrder::PositionOf(std::uint32_t blob, std::uint64_t offset) const {
  const auto behind = std::upper_bound(
      segments_.begin(), segments_.end(), BlobBytes{blob, offset, ~0ull},
      [](const BlobBytes& at, const Segment& segment) { return at < segment.bytes; });
  SEALPOINT_CHECK(behind != segments_.begin());
  const Segment& segment = *std::prev(behind);
  SEALPOINT_CHECK(segment.bytes.blob == blob && offset < segment.bytes.end);
  const auto of_blob =
      std::lower_bound(blobs_.begin(), blobs_.end(), blob,
                       [](const Blob& one, std::uint32_t number) { return one.blob < number; });
  const std::uint64_t in_blob = segment.before + (offset - segment.bytes.begin);
  return stripe_positions_[of_blob->first_stripe + in_blob / stripe_size_bytes_] +
         in_blob % stripe_size_bytes_;
}

int ReadingWindow::ReaderOf(std::uint64_t position, int rank_count) const {
  const std::uint64_t part = DivideRoundUp(end - begin, static_cast<std::uint64_t>(rank_count));
  return static_cast<int>((position - begin) / part);
}

}  // namespace sealpoint::internal
