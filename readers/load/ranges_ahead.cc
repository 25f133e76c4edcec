// SPDX-License-Identifier: Apache-2.0
#include "readers/load/ranges_ahead.h"

#include <algorithm>
#include <cstdint>

#include "sealpoint/bytes.h"

namespace sealpoint::internal::load {
namespace {

// Behind the range that is read. Measured with two ranks on a virtio disk: 4 MiB and 8 MiB are
// alike, 16 MiB and more are slower.
constexpr std::uint64_t kAheadBytes = 8 * kMiB;
// Small ranges that lie apart. Fewer than the files that BlobFiles keeps open, so that each is
// still open when it is read.
constexpr std::size_t kAheadRanges = 16;

}  // namespace

std::pair<std::size_t, std::size_t> RangesAhead::Take(std::size_t i) {
  std::uint64_t bytes = 0;
  std::size_t end = i + 1;
  while (end < ranges_.size() && end - i <= kAheadRanges && bytes < kAheadBytes) {
    bytes += ranges_[end++].size;
  }
  const std::lock_guard lock(mutex_);
  const std::size_t begin = advised_;
  advised_ = std::max(begin, end);
  return {begin, end};
}

void RangesAhead::Reach(std::size_t i) {
  const auto [begin, end] = Take(i);
  for (std::size_t next = begin; next < end; ++next) {
    const transfer::PlanRange& range = ranges_[next];
    if (range.size == 0) continue;
    if (const auto file = files_.TryOpen(range)) file->WillRead(range.offset, range.size);
  }
}

}  // namespace sealpoint::internal::load
