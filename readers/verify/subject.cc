// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/subject.h"

#include <algorithm>
#include <utility>

#include "lib/base/macros.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal {

void Meter::set_total(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  progress_.bytes_total = bytes;
}

void Meter::Add(std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  progress_.bytes_done += bytes;
  if (on_progress_) on_progress_(progress_);
}

std::uint64_t Meter::bytes_done() const {
  const std::lock_guard lock(mutex_);
  return progress_.bytes_done;
}

Result<Worker> Worker::Create() {
  constexpr std::uint64_t kBudgetBytes = 4 * kChunkSizeMaxBytes;
  Worker worker;
  SEALPOINT_ASSIGN_OR_RETURN(worker.pool, StagingPool::Create(kBudgetBytes, kPieceSizeBytes));
  return worker;
}

Result<Bytes> ReadBytes(const ReadableFile& file, StagingPool& pool, std::uint64_t offset,
                        std::uint64_t size) {
  Bytes bytes;
  bytes.reserve(size);
  while (bytes.size() < size) {
    const std::uint64_t count = std::min(kPieceSizeBytes, size - bytes.size());
    SEALPOINT_ASSIGN_OR_RETURN(const RangeBytes range,
                               ReadRange(file, pool, offset + bytes.size(), count));
    bytes.insert(bytes.end(), range.bytes.begin(), range.bytes.end());
  }
  return bytes;
}

}  // namespace sealpoint::internal
