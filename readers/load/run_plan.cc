// SPDX-License-Identifier: Apache-2.0
#include "readers/load/run_plan.h"

#include <memory>
#include <mutex>
#include <utility>

#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"
#include "readers/load/ranges_ahead.h"

namespace sealpoint::internal {

RangeReader::RangeReader(const PlanSource& source, BlobFiles files, int threads,
                         std::uint64_t memory_budget_bytes)
    : files_(std::move(files)),
      source_{source.plan, {},          source.index, source.directory_path,
              files_,      source.pool, source.device} {
  const int affordable = AffordableThreads(source.plan, threads, memory_budget_bytes);
  for (int i = 0; i < affordable; ++i) readers_.emplace_back(source_);
}

Status RangeReader::Read(std::span<const PlanRange> ranges, const Take& take, RangesAhead& ahead,
                         std::size_t first) {
  return ParallelFor(static_cast<int>(readers_.size()), ranges.size(),
                     [&](int worker, std::size_t i) {
                       ahead.Reach(first + i);
                       return ReadOne(ranges[i], take, readers_[static_cast<std::size_t>(worker)]);
                     });
}

Status RangeReader::ReadOne(const PlanRange& range, const Take& take, ChunkReader& reader) {
  bool is_in_place = false;
  if (range.in_place != nullptr) {
    SEALPOINT_ASSIGN_OR_RETURN(is_in_place, reader.ReadInPlace(range));
  }
  if (!is_in_place) {
    return reader.ReadRange(
        range, [&](const PlanChunk& chunk, ByteSpan raw) { return take(chunk, raw, false); });
  }
  const ByteSpan bytes(range.in_place, range.size);
  for (std::size_t i = 0; i < range.chunk_count; ++i) {
    const PlanChunk& chunk = source_.plan.chunks[range.first_chunk + i];
    const ByteSpan raw = bytes.subspan(chunk.offset - range.offset, chunk.raw_size);
    SEALPOINT_RETURN_IF_ERROR(take(chunk, raw, true));
  }
  return {};
}

Result<DeviceBytes> RunPlan(const PlanSource& source, const ReadOptions& options,
                            std::uint64_t memory_budget_bytes, PhaseRecorder& phases) {
  SEALPOINT_RETURN_IF_ERROR(CheckThreads("threads", options.threads));
  SEALPOINT_ASSIGN_OR_RETURN(const auto delivery,
                             Delivery::Open(source, options, memory_budget_bytes));
  std::mutex mutex;  // guards `phases` and `bytes_done`
  std::uint64_t bytes_done = 0;
  RangesAhead ahead(source.files, source.ranges);
  const auto deliver = [&](int thread, std::size_t i) -> Status {
    const PlanRange& range = source.ranges[i];
    ahead.Reach(i);
    SEALPOINT_RETURN_IF_ERROR(delivery->Deliver(static_cast<std::size_t>(thread), range));
    const std::lock_guard lock(mutex);
    bytes_done += range.size;
    phases.Progress(bytes_done);
    return {};
  };
  SEALPOINT_RETURN_IF_ERROR(ParallelFor(delivery->thread_count(), source.ranges.size(), deliver));
  return delivery->Finish();
}

}  // namespace sealpoint::internal
