// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/exchange_chunks.h"

#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// Packs the chunks that this rank read into messages, chunk by chunk and requester by requester. A
// chunk is freed as soon as its last requester is served.
class Sender {
 public:
  Sender(const RequestedChunks& requested, std::vector<Bytes> held, int size)
      : requested_(requested), held_(std::move(held)), size_(static_cast<std::size_t>(size)) {}

  bool is_done() const { return chunk_ == held_.size(); }

  std::vector<Bytes> Next(std::uint64_t max_bytes) {
    std::vector<Bytes> outgoing(size_);
    std::uint64_t total = 0;
    while (!is_done()) {
      const RequestedChunks::Requester& requester = requested_.requesters[chunk_][requester_];
      const std::uint64_t size = requester.parts.size_bytes();
      if (total > 0 && total + size > max_bytes) break;
      total += size;
      requester.parts.Pack(held_[chunk_], outgoing[static_cast<std::size_t>(requester.rank)]);
      if (++requester_ < requested_.requesters[chunk_].size()) continue;
      held_[chunk_] = Bytes();
      requester_ = 0;
      ++chunk_;
    }
    return outgoing;
  }

 private:
  const RequestedChunks& requested_;
  std::vector<Bytes> held_;
  const std::size_t size_;
  std::size_t chunk_ = 0;
  std::size_t requester_ = 0;  // of that chunk
};

}  // namespace

Result<ExchangeTotals> ExchangeChunks(
    Communicator& comm, const RequestedChunks& requested, std::vector<Bytes> held,
    const std::vector<std::vector<ExpectedChunk>>& expected, std::uint64_t send_max_bytes,
    const std::function<void(const ExpectedChunk&, ByteSpan packed)>& take) {
  ExchangeTotals totals;
  Sender sender(requested, std::move(held), comm.size());
  std::vector<std::size_t> next(expected.size());
  // All ranks make the same number of exchanges: a rank that has nothing left to send goes on until
  // the reduction says that nobody has.
  for (bool goes_on = true; goes_on; ++totals.exchanges) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming,
                               comm.AllToAll(sender.Next(send_max_bytes)));
    for (std::size_t rank = 0; rank < incoming.size(); ++rank) {
      const bool is_own = static_cast<int>(rank) == comm.rank();
      if (!is_own) totals.bytes_received += incoming[rank].size();
      for (ByteSpan rest = incoming[rank]; !rest.empty();) {
        const bool fits = next[rank] < expected[rank].size() &&
                          expected[rank][next[rank]].parts.size_bytes() <= rest.size();
        if (!fits)
          return MakeError(Code::kComm, "rank ", rank,
                           " sent chunks that this rank did not request");
        const ExpectedChunk& chunk = expected[rank][next[rank]++];
        const std::uint64_t size = chunk.parts.size_bytes();
        take(chunk, rest.first(size));
        rest = rest.subspan(size);
      }
    }
    SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> open,
                               comm.AllReduceMax({sender.is_done() ? 0u : 1u}));
    goes_on = open.front() != 0;
  }
  for (std::size_t rank = 0; rank < expected.size(); ++rank) {
    if (next[rank] == expected[rank].size()) continue;
    return MakeError(Code::kComm, "rank ", rank,
                     " did not send all chunks that this rank requested");
  }
  return totals;
}

}  // namespace sealpoint::internal
