// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/requested_bytes.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/macros.h"
#include "lib/base/wire.h"

namespace sealpoint::internal {
namespace {

void EncodeRanges(std::span<const BlobBytes> ranges, WireWriter& out) {
  for (const BlobBytes& range : ranges) {
    out.Put(std::uint64_t{range.blob});
    out.Put(range.begin);
    out.Put(range.end);
  }
}

Status DecodeRanges(WireReader& in, std::vector<BlobBytes>& ranges) {
  while (!in.at_end()) {
    BlobBytes range;
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(range.begin, in.Number());
    SEALPOINT_ASSIGN_OR_RETURN(range.end, in.Number());
    range.blob = static_cast<std::uint32_t>(blob);
    ranges.push_back(range);
  }
  return {};
}

std::uint64_t SizeOf(std::span<const BlobBytes> ranges) {
  std::uint64_t size = 0;
  for (const BlobBytes& range : ranges) size += range.end - range.begin;
  return size;
}

// Those of the blobs that this rank joins.
Result<RequestedBytes> JoinOwnBlobs(Communicator& comm, const ReadPlanData& plan) {
  std::vector<BlobBytes> requested;
  for (const PlanRange& range : plan.ranges) {
    requested.push_back({range.blob, range.offset, range.offset + range.size});
  }
  std::vector<Bytes> outgoing(static_cast<std::size_t>(comm.size()));
  for (const BlobBytes& range : UnionOf(std::move(requested))) {
    WireWriter out(outgoing[range.blob % outgoing.size()]);
    EncodeRanges({&range, 1}, out);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> incoming, comm.AllToAll(outgoing));
  std::vector<BlobBytes> ranges;
  for (const Bytes& message : incoming) {
    WireReader in(message);
    SEALPOINT_RETURN_IF_ERROR(DecodeRanges(in, ranges));
  }
  return JoinRanges(std::move(ranges));
}

}  // namespace

RequestedBytes JoinRanges(std::vector<BlobBytes> ranges) {
  RequestedBytes joined;
  std::sort(ranges.begin(), ranges.end());
  std::vector<BlobBytes> shared;
  BlobBytes before;  // up to its end, this blob is requested
  for (const BlobBytes& range : ranges) {
    const std::uint64_t covered = before.blob == range.blob ? before.end : 0;
    if (range.begin < covered) {
      shared.push_back({range.blob, range.begin, std::min(range.end, covered)});
    }
    before = {range.blob, range.begin, std::max(range.end, covered)};
  }
  joined.shared = UnionOf(std::move(shared));
  joined.size_bytes = SizeOf(UnionOf(std::move(ranges)));
  return joined;
}

Result<RequestedBytes> JoinRequests(Communicator& comm, const ReadPlanData& plan) {
  SEALPOINT_ASSIGN_OR_RETURN(const RequestedBytes own, JoinOwnBlobs(comm, plan));
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(own.size_bytes);
  EncodeRanges(own.shared, out);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm.AllGather(bytes));
  RequestedBytes joined;
  for (const Bytes& message : all) {
    WireReader in(message);
    SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t size_bytes, in.Number());
    joined.size_bytes += size_bytes;
    SEALPOINT_RETURN_IF_ERROR(DecodeRanges(in, joined.shared));
  }
  joined.shared = UnionOf(std::move(joined.shared));
  return joined;
}

DividedRanges DivideRanges(const ReadPlanData& plan, const std::vector<BlobBytes>& shared) {
  DividedRanges divided;
  auto next = shared.begin();  // the first that may hold the chunk; chunks ascend
  for (const PlanRange& range : plan.ranges) {
    bool was_shared = false;
    for (std::size_t i = 0; i < range.chunk_count; ++i) {
      const PlanChunk& chunk = plan.chunks[range.first_chunk + i];
      const BlobBytes at{range.blob, chunk.offset, chunk.offset};
      while (next != shared.end() && BlobBytes{next->blob, next->end, next->end} <= at) ++next;
      const bool is_shared =
          next != shared.end() && next->blob == range.blob && next->begin <= chunk.offset;
      std::vector<PlanRange>& ranges = is_shared ? divided.shared : divided.alone;
      if (i == 0 || is_shared != was_shared) {
        ranges.push_back({.blob = range.blob,
                          .offset = chunk.offset,
                          .first_chunk = range.first_chunk + i,
                          .in_place = range.in_place});
        if (range.in_place != nullptr) ranges.back().in_place += chunk.offset - range.offset;
      }
      ranges.back().size += chunk.stored_size;
      ++ranges.back().chunk_count;
      was_shared = is_shared;
    }
  }
  return divided;
}

}  // namespace sealpoint::internal
