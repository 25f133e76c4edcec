// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/chunk_request.h"

#include <algorithm>
#include <bit>
#include <string>
#include <tuple>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "sealpoint/limits.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {
namespace {

constexpr std::uint64_t kElementSizeMax = 256;  // R-IDX-09

struct RankRequest {
  const ChunkRequest* request = nullptr;
  int rank = 0;
};

// Chunks of no bytes in the file do not exist, so the place of its bytes names a chunk.
auto Key(const ChunkRequest& request) { return std::tuple(request.blob, request.chunk.offset); }

Result<ChunkRequest> DecodeRequest(WireReader& in, const Metadata& index) {
  ChunkRequest request{.parts = ChunkParts(0)};
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(request.tensor, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(request.chunk.offset, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t stored_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t raw_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t element_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(request.chunk.raw_digest, in.Id());
  SEALPOINT_ASSIGN_OR_RETURN(request.chunk.stored_digest, in.Id());
  const bool is_ours = blob < index.blob_count() && request.tensor < index.tensor_count() &&
                       stored_size > 0 && stored_size <= kChunkSizeMaxBytes &&
                       raw_size <= kChunkSizeMaxBytes && element_size <= kElementSizeMax &&
                       RangeFits(request.chunk.offset, stored_size, index.blob(blob).file_size);
  if (!is_ours) return MakeError(Code::kComm, "another rank wants a chunk that cannot be");
  request.blob = static_cast<std::uint32_t>(blob);
  request.chunk.stored_size = static_cast<std::uint32_t>(stored_size);
  request.chunk.raw_size = static_cast<std::uint32_t>(raw_size);
  request.chunk.codec = static_cast<Codec>(codec);
  request.chunk.element_size = static_cast<std::uint16_t>(element_size);
  // At least one part, which has a byte or more: the chunk is not empty.
  SEALPOINT_ASSIGN_OR_RETURN(request.parts, ChunkParts::Decode(in, raw_size));
  return request;
}

void AppendChunk(const ChunkRequest& request, const Metadata& index, std::uint64_t range_size_max,
                 ReadPlanData& plan) {
  PlanChunk chunk = request.chunk;
  const std::string_view name = index.tensor(request.tensor).name();
  if (plan.names.empty() || plan.names.back() != name) plan.names.push_back(name);
  chunk.name = static_cast<std::uint32_t>(plan.names.size() - 1);
  plan.chunks.push_back(chunk);
  if (chunk.codec != Codec::kNone) {
    plan.decoded_size_max = std::max<std::uint64_t>(plan.decoded_size_max, chunk.raw_size);
  }
  PlanRange* const last = plan.ranges.empty() ? nullptr : &plan.ranges.back();
  const bool is_adjacent = last != nullptr && last->blob == request.blob &&
                           last->offset + last->size == chunk.offset &&
                           last->size + chunk.stored_size <= range_size_max;
  if (is_adjacent) {
    last->size += chunk.stored_size;
    ++last->chunk_count;
  } else {
    plan.ranges.push_back({.blob = request.blob,
                           .offset = chunk.offset,
                           .size = chunk.stored_size,
                           .first_chunk = plan.chunks.size() - 1,
                           .chunk_count = 1,
                           .in_place = nullptr});
  }
}

}  // namespace

void EncodeRequest(const ChunkRequest& request, Bytes& bytes) {
  WireWriter out(bytes);
  out.Put(std::uint64_t{request.blob});
  out.Put(request.tensor);
  out.Put(request.chunk.offset);
  out.Put(std::uint64_t{request.chunk.stored_size});
  out.Put(std::uint64_t{request.chunk.raw_size});
  out.Put(static_cast<std::uint64_t>(request.chunk.codec));
  out.Put(std::uint64_t{request.chunk.element_size});
  out.Put(request.chunk.raw_digest);
  out.Put(request.chunk.stored_digest);
  request.parts.Encode(out);
}

Result<std::vector<ChunkRequest>> DecodeRequests(ByteSpan bytes, const Metadata& index) {
  std::vector<ChunkRequest> requests;
  WireReader in(bytes);
  while (!in.at_end()) {
    SEALPOINT_ASSIGN_OR_RETURN(ChunkRequest request, DecodeRequest(in, index));
    requests.push_back(std::move(request));
  }
  return requests;
}

RequestedChunks MergeRequests(const std::vector<std::vector<ChunkRequest>>& requests,
                              const Metadata& index, std::uint64_t range_size_max) {
  std::vector<RankRequest> all;
  for (std::size_t rank = 0; rank < requests.size(); ++rank) {
    for (const ChunkRequest& request : requests[rank])
      all.push_back({&request, static_cast<int>(rank)});
  }
  std::sort(all.begin(), all.end(), [](const RankRequest& a, const RankRequest& b) {
    return std::tuple(Key(*a.request), a.rank) < std::tuple(Key(*b.request), b.rank);
  });
  RequestedChunks requested;
  const ChunkRequest* last = nullptr;
  for (const RankRequest& one : all) {
    if (last == nullptr || Key(*last) != Key(*one.request)) {
      AppendChunk(*one.request, index, range_size_max, requested.plan);
      requested.requesters.emplace_back();
      last = one.request;
    }
    requested.requesters.back().push_back({one.rank, one.request->parts});
  }
  for (const PlanRange& range : requested.plan.ranges) {
    const std::uint64_t begin = range.offset - range.offset % kDirectIoAlignmentBytes;
    const std::uint64_t end = AlignUp(range.offset + range.size, kDirectIoAlignmentBytes);
    requested.plan.range_memory_max =
        std::max(requested.plan.range_memory_max, std::bit_ceil(end - begin));
    requested.plan.summary.bytes_read += range.size;
  }
  return requested;
}

}  // namespace sealpoint::internal
