// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_BATCH_READER_H_
#define SEALPOINT_READERS_COLLECTIVE_BATCH_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/transfer/host_delivery.h"
#include "readers/collective/chunk_request.h"
#include "readers/collective/host_memory.h"
#include "readers/collective/reading_batch.h"
#include "readers/load/checkpoint_impl.h"
#include "readers/load/run_plan.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// Data read in one batch.
struct BatchData {
  // A chunk of this rank that is delivered later.
  struct HeldChunk {
    std::size_t chunk = 0;  // in this rank's plan
    Bytes raw{};            // empty: it was read in place
  };
  Outbox outbox;                  // the requested parts, by rank, in the order of the chunks
  std::vector<HeldChunk> held{};  // none if chunks were delivered while they were read
  std::uint64_t bytes_read = 0;   // stored
};

// Reads the batches of one rank in sequence: verifies each chunk, copies it from there to this
// rank's destinations, and packs the requested parts into the messages for other ranks. Thread
// safety: one call at a time, on any thread.
class BatchReader {
 public:
  // Holds the chunks of this rank if the plan is not for the host alone.
  BatchReader(const load::CheckpointImpl& checkpoint, const load::ReadPlanData& plan, int threads,
              int rank_count);

  // Overwrites `data` and reuses its memory. Errors: those of reading and converting. `ahead` has
  // the ranges of this batch and its neighbours.
  Status Read(const std::vector<ChunkToRead>& to_read, const ReadingBatch& batch,
              load::RangesAhead& ahead, BatchData& data);
  // Borrows this and the ranges.
  std::unique_ptr<load::RangesAhead> Ahead(std::span<const transfer::PlanRange> ranges) {
    return ranges_->Ahead(ranges);
  }

 private:
  const load::ReadPlanData& plan_;
  const std::size_t rank_count_;
  transfer::HostDelivery local_;
  const std::unique_ptr<load::RangeReader> ranges_;
  Bytes kept_;  // the last chunk, if the next batch sends more of it
};

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_BATCH_READER_H_
