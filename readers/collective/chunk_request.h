// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_CHUNK_REQUEST_H_
#define SEALPOINT_READERS_COLLECTIVE_CHUNK_REQUEST_H_

#include <cstdint>
#include <vector>

#include "lib/metadata/metadata.h"
#include "readers/collective/chunk_parts.h"
#include "readers/load/read_plan_data.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// A chunk that one rank asks another to read: what its verified record says, so that the reader
// needs no table of it.
struct ChunkRequest {
  std::uint32_t blob = 0;
  std::uint64_t tensor = 0;  // in the index, for errors
  PlanChunk chunk{};         // without copies and name
  ChunkParts parts;          // which are to be sent
};

void EncodeRequest(const ChunkRequest& request, Bytes& out);
// All requests of one message. Errors: Comm (malformed, or not a chunk of this checkpoint).
Result<std::vector<ChunkRequest>> DecodeRequests(ByteSpan bytes, const Metadata& index);

// What one rank reads in a round: the chunks that any rank requested from it, each once, with the
// ranks that get them.
struct RequestedChunks {
  struct Requester {
    int rank = 0;
    ChunkParts parts;
  };
  ReadPlanData plan;                               // ranges and chunks, without copies
  std::vector<std::vector<Requester>> requesters;  // per chunk, by rank
};

// Joins the requests of all ranks; `requests[r]` are those of rank r.
RequestedChunks MergeRequests(const std::vector<std::vector<ChunkRequest>>& requests,
                              const Metadata& index, std::uint64_t range_size_max);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_CHUNK_REQUEST_H_
