// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/chunk_request.h"

#include <cstdint>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"

namespace sealpoint::internal::collective {

void EncodeRequest(const transfer::PlanChunk& chunk, const transfer::ChunkParts& parts,
                   Bytes& bytes) {
  WireWriter out(bytes);
  out.Put(std::uint64_t{chunk.blob});
  out.Put(chunk.offset);
  parts.Encode(out);
}

// Chunks of no bytes in the file do not exist, so the place of its bytes names a chunk.
Status TakeRequests(ByteSpan message, int rank, const load::ReadPlanData& plan,
                    std::vector<ChunkToRead>& to_read) {
  WireReader in(message);
  auto next = to_read.begin();
  while (!in.at_end()) {
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t offset, in.Number());
    const auto is_it = [&](const ChunkToRead& candidate) {
      const transfer::PlanChunk& chunk = plan.chunks[candidate.chunk];
      return chunk.blob == blob && chunk.offset == offset;
    };
    while (next != to_read.end() && !is_it(*next)) ++next;
    if (next == to_read.end()) {
      return MakeError(Code::kComm, "rank ", rank,
                       " requests a chunk that this rank does not read");
    }
    SEALPOINT_ASSIGN_OR_RETURN(transfer::ChunkParts parts,
                               transfer::ChunkParts::Decode(in, plan.chunks[next->chunk].raw_size));
    next->requesters.push_back({rank, std::move(parts)});
    ++next;
  }
  return {};
}

}  // namespace sealpoint::internal::collective
