// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_RUN_PLAN_H_
#define SEALPOINT_READERS_LOAD_RUN_PLAN_H_

#include <cstdint>

#include "lib/base/phase_recorder.h"
#include "readers/load/chunk_reader.h"
#include "readers/load/device_reader.h"
#include "sealpoint/checkpoint.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// How many of `threads` the budget allows, at least one: each needs a range, and twice the largest
// decoded chunk, since undoing the byte split takes a second buffer.
int AffordableThreads(const ReadPlanData& plan, int threads, std::uint64_t memory_budget_bytes);

// Fetches and verifies all ranges on up to `threads` threads and hands each chunk's raw bytes to
// `take`, which several threads may call at a time.
Status ReadRanges(const PlanSource& source, int threads, std::uint64_t memory_budget_bytes,
                  const ChunkReader::Take& take);

// Fetches, verifies and copies everything that the ranges hold. When it returns, also with an
// error, nothing that it queued on a device runs any more. Progress goes to the current phase.
Result<DeviceBytes> RunPlan(const PlanSource& source, const ReadOptions& options,
                            std::uint64_t memory_budget_bytes, PhaseRecorder& phases);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_RUN_PLAN_H_
