// SPDX-License-Identifier: Apache-2.0
#include "readers/load/range_files.h"

#include <algorithm>

#include "sealpoint/bytes.h"

namespace sealpoint::internal::load {
namespace {

// A smaller range gains less than a read of its own costs, which nothing announces.
constexpr std::uint64_t kDirectRangeMinBytes = kMiB;

}  // namespace

bool RangeFiles::IsReadDirectly(const transfer::PlanRange& range, const ReadableFile& file) const {
  return direct_reads_ == DirectReads::kIfCold && range.size >= kDirectRangeMinBytes &&
         !range.has_other_readers && !file.IsCached(range.offset, range.size);
}

Result<RangeFiles::File> RangeFiles::Open(const transfer::PlanRange& range) {
  if (direct_reads_ == DirectReads::kAlways) return direct_.Open(range.blob);
  Result<File> file = buffered_.Open(range.blob);
  if (!file || !IsReadDirectly(range, **file)) return file;
  return direct_.Open(range.blob);
}

RangeFiles::File RangeFiles::TryOpen(const transfer::PlanRange& range) {
  if (direct_reads_ == DirectReads::kAlways) return direct_.TryOpen(range.blob);
  File file = buffered_.TryOpen(range.blob);
  if (file == nullptr || !IsReadDirectly(range, *file)) return file;
  return direct_.TryOpen(range.blob);
}

bool RangeFiles::AreMostlyDirect(std::span<const transfer::PlanRange> ranges) {
  constexpr std::size_t kSamples = 8;
  if (direct_reads_ == DirectReads::kNever) return false;
  const std::size_t count = std::min(kSamples, ranges.size());
  std::size_t direct = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const File file = TryOpen(ranges[(2 * i + 1) * ranges.size() / (2 * count)]);
    if (file != nullptr && file->is_direct()) ++direct;
  }
  return 2 * direct > count;
}

}  // namespace sealpoint::internal::load
