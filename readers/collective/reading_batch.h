// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_READING_BATCH_H_
#define SEALPOINT_READERS_COLLECTIVE_READING_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "readers/collective/chunk_request.h"
#include "readers/load/read_plan_data.h"

namespace sealpoint::internal::collective {

// A place among the parts that a rank sends: chunk by chunk, and requester by requester.
struct SendingPlace {
  std::size_t chunk = 0;  // in the list of chunks to read
  std::size_t requester = 0;
  friend auto operator<=>(const SendingPlace&, const SendingPlace&) = default;
};

// Parts that a rank reads together and then sends in one exchange, from `begin` up to `end`. A
// chunk is read in the batch of its first requester.
struct ReadingBatch {
  SendingPlace begin{};
  SendingPlace end{};
  std::vector<transfer::PlanRange> ranges{};  // of the rank's plan
  std::size_t first_range = 0;                // number of ranges in the previous batches
};

struct BatchLimits {
  // limit for data held simultaneously, except for the parts of one chunk
  std::uint64_t size_max_bytes = 0;
  std::uint64_t range_size_max_bytes = 0;  // but for one chunk
  bool holds_chunks = false;  // the raw bytes of the chunks are held until the exchange is over
};

// Divides the chunks that a rank reads, which ascend. Chunks with more data to send than a batch
// holds are sent in several batches. `ranges` are those of the plan that the chunks refer to.
std::vector<ReadingBatch> DivideIntoBatches(const load::ReadPlanData& plan,
                                            const std::vector<transfer::PlanRange>& ranges,
                                            const std::vector<ChunkToRead>& to_read,
                                            const BatchLimits& limits);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_READING_BATCH_H_
