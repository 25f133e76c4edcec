// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_CHUNK_REQUEST_H_
#define SEALPOINT_READERS_COLLECTIVE_CHUNK_REQUEST_H_

#include <cstddef>
#include <vector>

#include "lib/transfer/chunk_parts.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// A chunk that this rank reads, for itself and for ranks that requested parts of it.
struct ChunkToRead {
  struct Requester {
    int rank = 0;
    transfer::ChunkParts parts;
  };
  std::size_t chunk = 0;                // in this rank's plan
  std::size_t range = 0;                // range of that plan that contains it
  std::vector<Requester> requesters{};  // other ranks, ascending
};

// Asks the reader of a chunk for parts of it.
void EncodeRequest(const transfer::PlanChunk& chunk, const transfer::ChunkParts& parts, Bytes& out);

// Adds all requests of one message of `rank` to the chunks that this rank reads, which ascend.
// Errors: Comm (malformed; or chunks that this rank does not read, duplicate, or out of order).
Status TakeRequests(ByteSpan message, int rank, const load::ReadPlanData& plan,
                    std::vector<ChunkToRead>& to_read);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_CHUNK_REQUEST_H_
