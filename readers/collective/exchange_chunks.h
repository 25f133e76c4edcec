// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_EXCHANGE_CHUNKS_H_
#define SEALPOINT_READERS_COLLECTIVE_EXCHANGE_CHUNKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "lib/transfer/chunk_parts.h"
#include "readers/collective/host_memory.h"
#include "sealpoint/bytes.h"
#include "sealpoint/communicator.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::collective {

// A chunk with parts that this rank requested from another.
struct ExpectedChunk {
  std::size_t chunk = 0;  // in this rank's plan
  transfer::ChunkParts parts;
};

// The chunks that this rank requested from each rank, in the order in which they arrive, which is
// that of their position in the files.
class ExpectedChunks {
 public:
  explicit ExpectedChunks(int rank_count)
      : of_ranks_(static_cast<std::size_t>(rank_count)), next_(of_ranks_.size()) {}

  void Add(int rank, ExpectedChunk chunk);
  std::uint64_t size_bytes() const { return size_bytes_; }  // of all parts

  // Calls `take` with each chunk of a message to this rank, packed. Errors: Comm (the bytes do not
  // match the next chunk).
  using Take = std::function<void(const ExpectedChunk&, ByteSpan packed)>;
  Status TakeMessage(std::size_t rank, ByteSpan message, const Take& take);
  // Errors: Comm (something has not arrived).
  Status CheckAllArrived() const;

 private:
  std::vector<std::vector<ExpectedChunk>> of_ranks_;
  std::vector<std::size_t> next_;  // of each rank
  std::uint64_t size_bytes_ = 0;
};

// Sends each rank its message and takes the chunks of the others. Collective. Returns the bytes
// sent by other ranks. Errors: Comm, Timeout; the messages are then lost.
Result<std::uint64_t> ExchangeChunks(Communicator& comm, Outbox& outbox, ExpectedChunks& expected,
                                     const ExpectedChunks::Take& take);

}  // namespace sealpoint::internal::collective

#endif  // SEALPOINT_READERS_COLLECTIVE_EXCHANGE_CHUNKS_H_
