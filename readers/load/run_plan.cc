// SPDX-License-Identifier: Apache-2.0
#include "readers/load/run_plan.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/pipeline/thread_pool.h"
#include "readers/load/copy_out.h"

namespace sealpoint::internal {
namespace {

Status RunRange(const ReadPlanData& plan, const PlanRange& range, bool isolate,
                ChunkReader& reader) {
  if (range.in_place != nullptr && !isolate) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool is_done, reader.ReadInPlace(range));
    if (is_done) return {};
  }
  return reader.ReadRange(
      range, [&plan](const PlanChunk& chunk, ByteSpan raw) { return CopyOut(plan, chunk, raw); });
}

}  // namespace

int AffordableThreads(const ReadPlanData& plan, int threads, std::uint64_t memory_budget_bytes) {
  const std::uint64_t need = plan.range_memory_max + 2 * plan.decoded_size_max;
  if (need == 0) return threads;
  const std::uint64_t affordable = std::max<std::uint64_t>(1, memory_budget_bytes / need);
  return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), affordable));
}

Status ReadRanges(const PlanSource& source, int threads, std::uint64_t memory_budget_bytes,
                  const ChunkReader::Take& take) {
  const int affordable = AffordableThreads(source.plan, threads, memory_budget_bytes);
  std::deque<ChunkReader> readers;
  for (int i = 0; i < affordable; ++i) readers.emplace_back(source);
  return ParallelFor(affordable, source.plan.ranges.size(), [&](int worker, std::size_t i) {
    return readers[static_cast<std::size_t>(worker)].ReadRange(source.plan.ranges[i], take);
  });
}

Status RunPlan(const PlanSource& source, const ReadOptions& options,
               std::uint64_t memory_budget_bytes, PhaseRecorder& phases) {
  if (options.threads < 1) return InvalidArgument("a read with ", options.threads, " threads");
  const ReadPlanData& plan = source.plan;
  const int threads = AffordableThreads(plan, options.threads, memory_budget_bytes);
  std::deque<ChunkReader> readers;  // never moves its elements
  for (int i = 0; i < threads; ++i) readers.emplace_back(source);

  std::mutex mutex;  // guards `phases` and `bytes_done`
  std::uint64_t bytes_done = 0;
  return ParallelFor(threads, plan.ranges.size(), [&](int worker, std::size_t i) -> Status {
    const PlanRange& range = plan.ranges[i];
    SEALPOINT_RETURN_IF_ERROR(
        RunRange(plan, range, options.isolate, readers[static_cast<std::size_t>(worker)]));
    const std::lock_guard lock(mutex);
    bytes_done += range.size;
    phases.Progress(bytes_done);
    return {};
  });
}

}  // namespace sealpoint::internal
