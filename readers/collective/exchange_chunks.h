// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_EXCHANGE_CHUNKS_H_
#define SEALPOINT_READERS_COLLECTIVE_EXCHANGE_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "readers/collective/chunk_request.h"
#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// A chunk that this rank requested from another.
struct ExpectedChunk {
  std::size_t chunk = 0;  // in this rank's plan
  ChunkParts parts;
};

struct ExchangeTotals {
  std::uint64_t bytes_received = 0;  // from other ranks
  std::uint64_t exchanges = 0;
};

// Sends the requested parts of each chunk that this rank read to every rank that requested them, in
// as many exchanges as needed to send at most `send_max_bytes` (or the parts of one chunk) at a
// time from each rank, and calls `take` with what arrives, packed. `held` has the raw bytes of each
// requested chunk and is emptied on the way. `expected[r]` are the chunks that this rank requested
// from rank r, in the order of their position in the files, in which they arrive. Collective.
// Errors: Comm, Timeout.
Result<ExchangeTotals> ExchangeChunks(
    Communicator& comm, const RequestedChunks& requested, std::vector<Bytes> held,
    const std::vector<std::vector<ExpectedChunk>>& expected, std::uint64_t send_max_bytes,
    const std::function<void(const ExpectedChunk&, ByteSpan packed)>& take);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_EXCHANGE_CHUNKS_H_
