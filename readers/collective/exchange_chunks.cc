// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/exchange_chunks.h"

#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::collective {

void ExpectedChunks::Add(int rank, ExpectedChunk chunk) {
  size_bytes_ += chunk.parts.size_bytes();
  of_ranks_[static_cast<std::size_t>(rank)].push_back(std::move(chunk));
}

Status ExpectedChunks::TakeMessage(std::size_t rank, ByteSpan message, const Take& take) {
  while (!message.empty()) {
    const bool fits = next_[rank] < of_ranks_[rank].size() &&
                      of_ranks_[rank][next_[rank]].parts.size_bytes() <= message.size();
    if (!fits) {
      return MakeError(Code::kComm, "rank ", rank, " sent chunks that this rank did not request");
    }
    const ExpectedChunk& chunk = of_ranks_[rank][next_[rank]++];
    const std::uint64_t size = chunk.parts.size_bytes();
    take(chunk, message.first(size));
    message = message.subspan(size);
  }
  return {};
}

Status ExpectedChunks::CheckAllArrived() const {
  for (std::size_t rank = 0; rank < of_ranks_.size(); ++rank) {
    if (next_[rank] == of_ranks_[rank].size()) continue;
    return MakeError(Code::kComm, "rank ", rank,
                     " did not send all chunks that this rank requested");
  }
  return {};
}

Result<std::uint64_t> ExchangeChunks(Communicator& comm, Outbox& outbox, ExpectedChunks& expected,
                                     const ExpectedChunks::Take& take) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<ByteSpan> messages, outbox.Exchange(comm));
  std::uint64_t received = 0;
  for (std::size_t rank = 0; rank < messages.size(); ++rank) {
    received += messages[rank].size();
    SEALPOINT_RETURN_IF_ERROR(expected.TakeMessage(rank, messages[rank], take));
  }
  return received;
}

}  // namespace sealpoint::internal::collective
