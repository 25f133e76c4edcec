// SPDX-License-Identifier: Apache-2.0
#include "readers/load/read_ahead.h"

#include <algorithm>

#include "sealpoint/bytes.h"

namespace sealpoint::internal {
namespace {

// Behind the range that is read. Measured with two ranks on a virtio disk: 4 MiB and 8 MiB are
// alike, 16 MiB and more are slower.
constexpr std::uint64_t kAheadBytes = 8 * kMiB;
// Small ranges that lie apart; also a bound on the files that are open for it.
constexpr std::size_t kAheadRanges = 16;

}  // namespace

std::size_t ReadAhead::EndFor(std::size_t i) const {
  std::uint64_t bytes = 0;
  std::size_t end = i + 1;
  while (end < ranges_.size() && end - i <= kAheadRanges && bytes < kAheadBytes) {
    bytes += ranges_[end++].size;
  }
  return end;
}

void ReadAhead::Reach(std::size_t i) {
  const std::size_t end = EndFor(i);
  const std::lock_guard lock(mutex_);
  for (; told_ < end; ++told_) {
    const PlanRange& range = ranges_[told_];
    if (const auto file = files_.Open(range.blob)) (*file)->WillRead(range.offset, range.size);
  }
}

}  // namespace sealpoint::internal
