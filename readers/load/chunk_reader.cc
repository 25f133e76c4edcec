// SPDX-License-Identifier: Apache-2.0
#include "readers/load/chunk_reader.h"

#include <algorithm>
#include <span>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/resize.h"
#include "lib/format/constants.h"
#include "lib/pipeline/range_reader.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal {
namespace {

std::span<const PlanChunk> ChunksOf(const ReadPlanData& plan, const PlanRange& range) {
  return std::span(plan.chunks).subspan(range.first_chunk, range.chunk_count);
}

// What is read in place is hashed while it is in the cache: a hash block is half of a small L2.
constexpr std::uint64_t kHashBlockBytes = 256 * kKiB;

// R-CHK-02.
Status CheckRaw(const PlanChunk& chunk, const Digest& found) {
  if (found == chunk.raw_digest) return {};
  return DigestError("R-CHK-02", "chunk", found, chunk.raw_digest);
}

}  // namespace

Status ChunkReader::ReadRange(const PlanRange& range, const Take& take) {
  const PlanChunk& first = source_.plan.chunks[range.first_chunk];
  const auto file = source_.files.Open(range.blob);
  if (!file) return At(range, first, file.error());
  const auto fetched = internal::ReadRange(**file, source_.pool, range.offset, range.size);
  if (!fetched) return At(range, first, fetched.error());
  return Deliver(range, fetched->bytes, take);
}

Status ChunkReader::ReadRangeInto(MutableByteSpan memory, const PlanRange& range,
                                  const Take& take) {
  const PlanChunk& first = source_.plan.chunks[range.first_chunk];
  const auto file = source_.files.Open(range.blob);
  if (!file) return At(range, first, file.error());
  const auto bytes = internal::ReadRangeInto(**file, memory, range.offset, range.size);
  if (!bytes) return At(range, first, bytes.error());
  return Deliver(range, *bytes, take);
}

Status ChunkReader::Deliver(const PlanRange& range, ByteSpan bytes, const Take& take) {
  for (const PlanChunk& chunk : ChunksOf(source_.plan, range)) {
    const ByteSpan stored = bytes.subspan(chunk.offset - range.offset, chunk.stored_size);
    Result<ByteSpan> raw = Verify(chunk, stored);
    if (!raw) return At(range, chunk, std::move(raw).error());
    Status taken = take(chunk, *raw);
    if (!taken.ok()) return At(range, chunk, std::move(taken));
  }
  return {};
}

Result<bool> ChunkReader::ReadInPlace(const PlanRange& range) {
  const PlanChunk& first = source_.plan.chunks[range.first_chunk];
  const auto file = source_.files.Open(range.blob);
  if (!file) return At(range, first, file.error());
  if ((*file)->is_direct()) return false;
  const MutableByteSpan target(range.in_place, range.size);
  std::uint64_t fetched = 0;
  for (const PlanChunk& chunk : ChunksOf(source_.plan, range)) {
    const std::uint64_t end = chunk.offset - range.offset + chunk.raw_size;
    for (std::uint64_t at = chunk.offset - range.offset; at < end;) {
      if (at == fetched) {
        const MutableByteSpan block =
            target.subspan(fetched, std::min(kHashBlockBytes, range.size - fetched));
        Status status = (*file)->ReadAt(range.offset + fetched, block);
        if (!status.ok()) return At(range, chunk, std::move(status));
        fetched += block.size();
      }
      const std::uint64_t hashed_end = std::min(end, fetched);
      hasher_.Update(target.subspan(at, hashed_end - at));
      at = hashed_end;
    }
    Status status = CheckRaw(chunk, hasher_.Finish());
    if (!status.ok()) return At(range, chunk, std::move(status));
  }
  return true;
}

Result<ByteSpan> ChunkReader::Verify(const PlanChunk& chunk, ByteSpan stored) {
  ByteSpan raw = stored;
  if (chunk.codec != Codec::kNone) {
    // Before the decoder sees them: it must not run over bytes that nobody vouches for.
    if (const Digest found = ComputeDigest(stored); found != chunk.stored_digest) {
      return DigestError("R-CHK-01", "stored chunk", found, chunk.stored_digest);
    }
    if (decoded_.size() < chunk.raw_size) {
      SEALPOINT_RETURN_IF_ERROR(ResizeBytes(decoded_, chunk.raw_size));
    }
    const MutableByteSpan out = MutableByteSpan(decoded_).first(chunk.raw_size);
    SEALPOINT_RETURN_IF_ERROR(codec_.Decode(chunk.codec, chunk.element_size, stored, out));
    raw = out;
  }
  SEALPOINT_RETURN_IF_ERROR(CheckRaw(chunk, ComputeDigest(raw)));
  return raw;
}

// What an inner frame named already stays: the offset of a codec's error is one in the chunk.
Status ChunkReader::At(const PlanRange& range, const PlanChunk& chunk, Status error) const {
  if (error.ok()) return error;
  return source_.plan.AtItem(
      chunk.name,
      std::move(error)
          .AtPath(JoinPath(source_.directory_path, BlobName(source_.index.blob(range.blob).id)))
          .AtOffset(chunk.offset));
}

}  // namespace sealpoint::internal
