// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/verify_context.h"

#include <algorithm>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/resize.h"
#include "lib/observe/phase_recorder.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal::verify {

void Meter::set_total(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  progress_.bytes_total = bytes;
}

void Meter::Add(std::uint64_t bytes) {
  if (bytes == 0) return;
  const std::lock_guard lock(mutex_);
  progress_.bytes_done += bytes;
  if (on_progress_ && failure_.ok()) failure_ = observe::Tell(on_progress_, progress_);
}

Status Meter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Meter::PassOver(std::uint64_t bytes, bool is_known) {
  const std::lock_guard lock(mutex_);
  progress_.bytes_total -= bytes;
  if (is_known) bytes_known_ += bytes;
}

std::uint64_t Meter::bytes_known() const {
  const std::lock_guard lock(mutex_);
  return bytes_known_;
}

std::uint64_t Meter::bytes_done() const {
  const std::lock_guard lock(mutex_);
  return progress_.bytes_done;
}

Result<Worker> Worker::Create(std::uint64_t read_size_bytes) {
  constexpr std::uint64_t kBudgetBytes = 4 * kChunkSizeMaxBytes;
  Worker worker;
  SEALPOINT_ASSIGN_OR_RETURN(worker.pool,
                             device::StagingPool::Create(kBudgetBytes, read_size_bytes));
  return worker;
}

Result<Bytes> ReadBytes(const ReadableFile& file, device::StagingPool& pool, std::uint64_t offset,
                        std::uint64_t size) {
  Bytes bytes;
  SEALPOINT_RETURN_IF_ERROR(container::ResizeBytes(bytes, size));
  for (std::uint64_t at = 0; at < size; at += kReadSizeBytes) {
    const std::uint64_t count = std::min(kReadSizeBytes, size - at);
    SEALPOINT_ASSIGN_OR_RETURN(const pipeline::RangeBytes range,
                               pipeline::ReadRange(file, pool, offset + at, count));
    std::copy(range.bytes.begin(), range.bytes.end(),
              bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

}  // namespace sealpoint::internal::verify
