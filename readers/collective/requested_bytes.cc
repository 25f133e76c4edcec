// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/requested_bytes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "lib/base/macros.h"
#include "lib/base/wire.h"

namespace sealpoint::internal::collective {
namespace {

Result<BlobBytes> DecodeBytes(WireReader& in) {
  BlobBytes bytes;
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(bytes.begin, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(bytes.end, in.Number());
  if (bytes.begin >= bytes.end) return MalformedMessage();
  bytes.blob = static_cast<std::uint32_t>(blob);
  return bytes;
}

void EncodeBytes(const BlobBytes& bytes, WireWriter& out) {
  out.Put(std::uint64_t{bytes.blob});
  out.Put(bytes.begin);
  out.Put(bytes.end);
}

// What this rank requests, in ranges that do not touch.
std::vector<RankBytes> RequestsOf(const load::ReadPlanData& plan, int rank) {
  std::vector<RankBytes> requests;
  for (const transfer::PlanRange& range : plan.ranges) {
    std::uint64_t chunk_size_max = 1;
    for (std::size_t i = 0; i < range.chunk_count; ++i) {
      const std::uint64_t size = plan.chunks[range.first_chunk + i].stored_size;
      chunk_size_max = std::max(chunk_size_max, size);
    }
    const BlobBytes bytes{range.blob, range.offset, range.offset + range.size};
    const bool goes_on = !requests.empty() && requests.back().bytes.blob == bytes.blob &&
                         requests.back().bytes.end == bytes.begin;
    if (!goes_on) {
      requests.push_back({bytes, chunk_size_max, rank});
      continue;
    }
    requests.back().bytes.end = bytes.end;
    requests.back().chunk_size_max = std::max(requests.back().chunk_size_max, chunk_size_max);
  }
  return requests;
}

// Those of the blobs that this rank joins.
Result<RequestedBytes> JoinOwnBlobs(Communicator& comm, const load::ReadPlanData& plan) {
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm.size()));
  for (const RankBytes& request : RequestsOf(plan, comm.rank())) {
    WireWriter out(outgoing[request.bytes.blob % outgoing.size()]);
    EncodeBytes(request.bytes, out);
    out.Put(request.chunk_size_max);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm.AllToAll(std::move(outgoing)));
  std::vector<RankBytes> requested;
  for (std::size_t rank = 0; rank < incoming.size(); ++rank) {
    WireReader in(incoming[rank]);
    while (!in.at_end()) {
      RankBytes request{.rank = static_cast<int>(rank)};
      SEALPOINT_ASSIGN_OR_RETURN(request.bytes, DecodeBytes(in));
      SEALPOINT_ASSIGN_OR_RETURN(request.chunk_size_max, in.Number());
      if (request.chunk_size_max == 0) return MalformedMessage();
      requested.push_back(request);
    }
  }
  return AssignReaders(requested, comm.size());
}

}  // namespace

Result<RequestedBytes> JoinRequests(Communicator& comm, const load::ReadPlanData& plan) {
  SEALPOINT_ASSIGN_OR_RETURN(const RequestedBytes local, JoinOwnBlobs(comm, plan));
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(local.size_bytes);
  for (const ReaderBytes& part : local.shared) {
    EncodeBytes(part.bytes, out);
    out.Put(static_cast<std::uint64_t>(part.reader));
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  RequestedBytes joined;
  for (const Bytes& message : all) {
    WireReader in(message);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t size_bytes, in.Number());
    joined.size_bytes += size_bytes;
    while (!in.at_end()) {
      ReaderBytes part;
      SEALPOINT_ASSIGN_OR_RETURN(part.bytes, DecodeBytes(in));
      SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t reader, in.Number());
      if (reader >= all.size()) return MalformedMessage();
      part.reader = static_cast<int>(reader);
      joined.shared.push_back(part);
    }
  }
  std::sort(joined.shared.begin(), joined.shared.end());
  return joined;
}

transfer::PlanRange PartOf(const load::ReadPlanData& plan, const transfer::PlanRange& range,
                           std::size_t first, std::size_t count) {
  const transfer::PlanChunk& begin = plan.chunks[first];
  const transfer::PlanChunk& last = plan.chunks[first + count - 1];
  transfer::PlanRange part = range;
  part.offset = begin.offset;
  part.size = last.offset + last.stored_size - begin.offset;
  part.first_chunk = first;
  part.chunk_count = count;
  if (part.in_place != nullptr) part.in_place += begin.offset - range.offset;
  return part;
}

DividedRanges DivideRanges(const load::ReadPlanData& plan, const std::vector<ReaderBytes>& shared) {
  DividedRanges divided;
  auto next = shared.begin();  // the first that may hold the chunk; chunks ascend
  for (const transfer::PlanRange& range : plan.ranges) {
    const auto is_shared = [&](std::size_t chunk) {
      const std::uint64_t offset = plan.chunks[chunk].offset;
      const BlobBytes at{range.blob, offset, offset};
      while (next != shared.end() &&
             BlobBytes{next->bytes.blob, next->bytes.end, next->bytes.end} <= at) {
        ++next;
      }
      return next != shared.end() && next->bytes.blob == range.blob && next->bytes.begin <= offset;
    };
    const std::size_t end = range.first_chunk + range.chunk_count;
    std::size_t first = range.first_chunk;
    bool of_others = is_shared(first);
    for (std::size_t i = first + 1; i <= end; ++i) {
      const bool next_of_others = i < end && is_shared(i);
      if (i < end && next_of_others == of_others) continue;
      (of_others ? divided.shared : divided.alone).push_back(PartOf(plan, range, first, i - first));
      first = i;
      of_others = next_of_others;
    }
  }
  return divided;
}

}  // namespace sealpoint::internal::collective
