// SPDX-License-Identifier: Apache-2.0
#include "readers/load/run_plan.h"

#include <deque>
#include <mutex>
#include <utility>

#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"
#include "readers/load/ranges_ahead.h"

namespace sealpoint::internal::load {

RangeReader::RangeReader(const PlanSource& source, RangeFiles files, int threads,
                         std::uint64_t memory_budget_bytes)
    : files_(std::move(files)),
      source_{source.plan, {},          source.index,  source.directory_path,
              files_,      source.pool, source.device, source.base} {
  const int affordable = transfer::AffordableThreads(source.plan, threads, memory_budget_bytes);
  for (int i = 0; i < affordable; ++i) readers_.emplace_back(source_);
}

Status RangeReader::Read(std::span<const transfer::PlanRange> ranges, transfer::Delivery& delivery,
                         RangesAhead& ahead, std::size_t first) {
  return pipeline::ParallelFor(
      static_cast<int>(readers_.size()), ranges.size(), [&](int thread, std::size_t i) {
        ahead.Reach(first + i);
        return readers_[static_cast<std::size_t>(thread)].Fetch(ranges[i], delivery);
      });
}

Result<transfer::DeviceBytes> RunPlan(const PlanSource& source, const ReadOptions& options,
                                      int sharing_processors, std::uint64_t memory_budget_bytes,
                                      observe::PhaseRecorder& phases) {
  std::uint64_t size_bytes = 0;
  for (const transfer::PlanRange& range : source.ranges) size_bytes += range.size;
  SEALPOINT_ASSIGN_OR_RETURN(int threads, pipeline::LoadThreads("threads", options.threads,
                                                                sharing_processors, size_bytes));
  if (options.threads == kThreadsAuto && source.files.AreMostlyDirect(source.ranges)) {
    threads = pipeline::DirectLoadThreads(threads, size_bytes);
  }
  const auto open_direct = [files = source.files.direct()](std::uint32_t blob) mutable {
    return files.Open(blob);
  };
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto deliveries,
      transfer::DeliverySet::Open({source.plan, source.pool, source.device, open_direct},
                                  {.threads = threads,
                                   .memory_budget_bytes = memory_budget_bytes,
                                   .isolates = options.isolate,
                                   .verifies_on_device = options.verify_on_device,
                                   .reads_directly = options.gpudirect_storage}));
  std::deque<ChunkReader> readers;
  for (int i = 0; i < deliveries->thread_count(); ++i) readers.emplace_back(source);
  std::mutex mutex;  // guards `phases` and `bytes_done`
  std::uint64_t bytes_done = 0;
  RangesAhead ahead(source.files, source.ranges);
  const auto deliver = [&](int thread, std::size_t i) -> Status {
    const transfer::PlanRange& range = source.ranges[i];
    ahead.Reach(i);
    SEALPOINT_RETURN_IF_ERROR(
        readers[static_cast<std::size_t>(thread)].Fetch(range, deliveries->Of(thread)));
    const std::lock_guard lock(mutex);
    bytes_done += range.size;
    phases.Progress(bytes_done);
    return {};
  };
  SEALPOINT_RETURN_IF_ERROR(
      pipeline::ParallelFor(deliveries->thread_count(), source.ranges.size(), deliver));
  return deliveries->Complete();
}

}  // namespace sealpoint::internal::load
