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

// What a rank reads at a time, and then sends in one exchange: the parts from `begin` up to `end`.
// A chunk is read in the batch in which its first requester is served.
struct ReadingBatch {
  SendingPlace begin{};
  SendingPlace end{};
  std::vector<transfer::PlanRange> ranges{};  // of the rank's plan
  std::size_t first_range = 0;                // so many are in the batches before it
};

struct BatchLimits {
  std::uint64_t size_max_bytes = 0;  // of what is held at a time, but for the parts of one chunk
  std::uint64_t range_size_max_bytes = 0;  // but for one chunk
  bool holds_chunks = false;  // the raw bytes of the chunks are held until the exchange is over
};

// Divides the chunks that a rank reads, which ascend. Those of which more is sent than a batch
// holds are sent in several. `ranges` are those of the plan that the chunks name.
std::vector<ReadingBatch> DivideIntoBatches(const load::ReadPlanData& plan,
                                            const std::vector<transfer::PlanRange>& ranges,
                                            const std::vector<ChunkToRead>& to_read,
                                            const BatchLimits& limits);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_READING_BATCH_H_
