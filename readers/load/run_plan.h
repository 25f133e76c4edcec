// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_RUN_PLAN_H_
#define SEALPOINT_READERS_LOAD_RUN_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "lib/observe/phase_recorder.h"
#include "lib/pipeline/load_threads.h"
#include "lib/transfer/delivery_set.h"
#include "readers/load/chunk_reader.h"
#include "readers/load/ranges_ahead.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::load {

// Reads and verifies ranges of one plan, in several calls, with files and decoders that remain
// open. Thread safety: one call at a time.
class RangeReader {
 public:
  // `source` names no ranges. Uses up to `threads` threads, as many as the budget allows.
  RangeReader(const PlanSource& source, RangeFiles files, int threads,
              std::uint64_t memory_budget_bytes);

  // Several threads call the delivery simultaneously. The ranges are those of `ahead` from number
  // `first` on.
  Status Read(std::span<const transfer::PlanRange> ranges, transfer::Delivery& delivery,
              RangesAhead& ahead, std::size_t first);
  // For ranges that are read in several calls. Borrows this and them.
  std::unique_ptr<RangesAhead> Ahead(std::span<const transfer::PlanRange> ranges) {
    return std::make_unique<RangesAhead>(files_, ranges);
  }

 private:
  RangeFiles files_;
  const PlanSource source_;
  std::deque<ChunkReader> readers_;  // never moves its elements
};

// The ranks that load together.
struct LoadingRanks {
  int count = 1;
  int sharing_processors = pipeline::ProcessesByEnvironment();  // with this one, which counts
};

// Fetches, verifies and delivers everything that the ranges hold. When it returns, also with an
// error, no destination is used any more. Progress goes to the current phase.
Result<transfer::DeviceBytes> RunPlan(const PlanSource& source, const ReadOptions& options,
                                      int sharing_processors, std::uint64_t memory_budget_bytes,
                                      observe::PhaseRecorder& phases);

}  // namespace sealpoint::internal::load

#endif  // SEALPOINT_READERS_LOAD_RUN_PLAN_H_
