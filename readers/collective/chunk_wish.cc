// SPDX-License-Identifier: Apache-2.0
#include "readers/collective/chunk_wish.h"

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

struct WishOfRank {
  const ChunkWish* wish = nullptr;
  int rank = 0;
};

// Chunks of no bytes in the file do not exist, so the place of its bytes names a chunk.
auto Key(const ChunkWish& wish) { return std::tuple(wish.blob, wish.chunk.offset); }

Result<ChunkWish> DecodeWish(WireReader& in, const Metadata& index) {
  ChunkWish wish{.parts = ChunkParts(0)};
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t blob, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(wish.tensor, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(wish.chunk.offset, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t stored_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t raw_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t codec, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint64_t element_size, in.Number());
  SEALPOINT_ASSIGN_OR_RETURN(wish.chunk.raw_digest, in.Id());
  SEALPOINT_ASSIGN_OR_RETURN(wish.chunk.stored_digest, in.Id());
  const bool is_ours = blob < index.blob_count() && wish.tensor < index.tensor_count() &&
                       stored_size > 0 && stored_size <= kChunkSizeMaxBytes &&
                       raw_size <= kChunkSizeMaxBytes && element_size <= kElementSizeMax &&
                       RangeFits(wish.chunk.offset, stored_size, index.blob(blob).file_size);
  if (!is_ours) return MakeError(Code::kComm, "another rank wants a chunk that cannot be");
  wish.blob = static_cast<std::uint32_t>(blob);
  wish.chunk.stored_size = static_cast<std::uint32_t>(stored_size);
  wish.chunk.raw_size = static_cast<std::uint32_t>(raw_size);
  wish.chunk.codec = static_cast<Codec>(codec);
  wish.chunk.element_size = static_cast<std::uint16_t>(element_size);
  // At least one part, which has a byte or more: the chunk is not empty.
  SEALPOINT_ASSIGN_OR_RETURN(wish.parts, ChunkParts::Decode(in, raw_size));
  return wish;
}

void AppendChunk(const ChunkWish& wish, const Metadata& index, std::uint64_t range_size_max,
                 ReadPlanData& plan) {
  PlanChunk chunk = wish.chunk;
  const std::string name(index.tensor(wish.tensor).name());
  if (plan.names.empty() || plan.names.back() != name) plan.names.push_back(name);
  chunk.name = static_cast<std::uint32_t>(plan.names.size() - 1);
  plan.chunks.push_back(chunk);
  if (chunk.codec != Codec::kNone) {
    plan.decoded_size_max = std::max<std::uint64_t>(plan.decoded_size_max, chunk.raw_size);
  }
  PlanRange* const last = plan.ranges.empty() ? nullptr : &plan.ranges.back();
  const bool is_adjacent = last != nullptr && last->blob == wish.blob &&
                           last->offset + last->size == chunk.offset &&
                           last->size + chunk.stored_size <= range_size_max;
  if (is_adjacent) {
    last->size += chunk.stored_size;
    ++last->chunk_count;
  } else {
    plan.ranges.push_back({.blob = wish.blob,
                           .offset = chunk.offset,
                           .size = chunk.stored_size,
                           .first_chunk = plan.chunks.size() - 1,
                           .chunk_count = 1,
                           .in_place = nullptr});
  }
}

}  // namespace

void EncodeWish(const ChunkWish& wish, Bytes& bytes) {
  WireWriter out(bytes);
  out.Put(std::uint64_t{wish.blob});
  out.Put(wish.tensor);
  out.Put(wish.chunk.offset);
  out.Put(std::uint64_t{wish.chunk.stored_size});
  out.Put(std::uint64_t{wish.chunk.raw_size});
  out.Put(static_cast<std::uint64_t>(wish.chunk.codec));
  out.Put(std::uint64_t{wish.chunk.element_size});
  out.Put(wish.chunk.raw_digest);
  out.Put(wish.chunk.stored_digest);
  wish.parts.Encode(out);
}

Result<std::vector<ChunkWish>> DecodeWishes(ByteSpan bytes, const Metadata& index) {
  std::vector<ChunkWish> wishes;
  WireReader in(bytes);
  while (!in.at_end()) {
    SEALPOINT_ASSIGN_OR_RETURN(ChunkWish wish, DecodeWish(in, index));
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

RequestedChunks MergeWishes(const std::vector<std::vector<ChunkWish>>& wishes,
                            const Metadata& index, std::uint64_t range_size_max) {
  std::vector<WishOfRank> all;
  for (std::size_t rank = 0; rank < wishes.size(); ++rank) {
    for (const ChunkWish& wish : wishes[rank]) all.push_back({&wish, static_cast<int>(rank)});
  }
  std::sort(all.begin(), all.end(), [](const WishOfRank& a, const WishOfRank& b) {
    return std::tuple(Key(*a.wish), a.rank) < std::tuple(Key(*b.wish), b.rank);
  });
  RequestedChunks requested;
  const ChunkWish* last = nullptr;
  for (const WishOfRank& one : all) {
    if (last == nullptr || Key(*last) != Key(*one.wish)) {
      AppendChunk(*one.wish, index, range_size_max, requested.plan);
      requested.wishers.emplace_back();
      last = one.wish;
    }
    requested.wishers.back().push_back({one.rank, one.wish->parts});
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
