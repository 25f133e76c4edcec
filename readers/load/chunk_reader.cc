// SPDX-License-Identifier: Apache-2.0
#include "readers/load/chunk_reader.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/resize.h"
#include "lib/format/constants.h"
#include "lib/pipeline/range_reader.h"
#include "lib/transfer/host_intake.h"
#include "readers/load/checkpoint_impl.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::load {
namespace {

// What is read in blocks is hashed while it is in the cache: a block is half of a small L2.
constexpr std::uint64_t kBlockBytes = 256 * kKiB;

// A file of the system, of which a read of a block costs little. Direct reads need aligned memory,
// and of other storages each call may be a request.
bool IsReadInBlocks(const ReadableFile& file) {
  return file.descriptor().has_value() && !file.is_direct();
}

// Copies from the page cache to memory that begins less than 32 bytes behind the source, modulo
// 4096, run at less than half of the usual speed on some processors: a load seems to need the bytes
// that were just stored. Memory from malloc begins 16 bytes behind a page. Such memory is filled
// from an aligned block by stores that bypass the caches.
bool IsSlowTarget(std::uint64_t offset, MutableByteSpan to) {
  constexpr std::uintptr_t kSlowBytes = 32;
  constexpr std::size_t kSizeMin = 64 * kKiB;  // below, the detour costs more
  const std::uintptr_t skew = (reinterpret_cast<std::uintptr_t>(to.data()) - offset) % 4096;
  return to.size() >= kSizeMin && 0 < skew && skew < kSlowBytes;
}

// Compares the digest of the stored bytes.
Status CheckStored(const transfer::PlanChunk& chunk, const Digest& found) {
  if (chunk.codec == Codec::kNone) {
    if (found == chunk.raw_digest) return {};
    return DigestError("R-CHK-02", "chunk", found, chunk.raw_digest);
  }
  if (found == chunk.stored_digest) return {};
  return DigestError("R-CHK-01", "stored chunk", found, chunk.stored_digest);
}

Status CheckRaw(const transfer::PlanChunk& chunk, const Digest& found) {
  if (found == chunk.raw_digest) return {};
  return DigestError("R-CHK-02", "chunk", found, chunk.raw_digest);
}

// The first chunks that go into a block, one at least.
std::span<const transfer::PlanChunk> FirstPiece(std::span<const transfer::PlanChunk> chunks) {
  std::size_t count = 1;
  for (std::uint64_t size = chunks.front().stored_size; count < chunks.size(); ++count) {
    size += chunks[count].stored_size;
    if (size > kBlockBytes) break;
  }
  return chunks.first(count);
}

std::uint64_t SizeOf(std::span<const transfer::PlanChunk> chunks) {
  return chunks.back().offset + chunks.back().stored_size - chunks.front().offset;
}

}  // namespace

Status ChunkReader::Fetch(const transfer::PlanRange& range, transfer::Delivery& delivery) {
  if (range.in_place != nullptr && delivery.reads_in_place()) {
    const auto file = source_.files.Open(range);
    if (!file) return At(source_.plan.chunks[range.first_chunk], file.error());
    // Direct reads need aligned memory.
    if (!(*file)->is_direct()) {
      SEALPOINT_RETURN_IF_ERROR(
          Read(**file, source_.plan.ChunksOf(range), MutableByteSpan(range.in_place, range.size)));
      delivery.InPlace(range);
      return {};
    }
  }
  SEALPOINT_ASSIGN_OR_RETURN(const transfer::FetchTarget target, delivery.Prepare(range, *this));
  if (range.size == 0) {
    SEALPOINT_RETURN_IF_ERROR(VerifyAll(range, {}, delivery));
  } else if (!target.is_fetched) {
    SEALPOINT_RETURN_IF_ERROR(target.memory.empty()
                                  ? FetchToScratch(range, delivery)
                                  : FetchToMemory(target.memory, range, delivery));
  }
  return delivery.EndRange();
}

Status ChunkReader::FetchToMemory(MutableByteSpan memory, const transfer::PlanRange& range,
                                  transfer::Delivery& delivery) {
  const transfer::PlanChunk& first = source_.plan.chunks[range.first_chunk];
  const auto file = source_.files.Open(range);
  if (!file) return At(first, file.error());
  const auto bytes = pipeline::ReadRangeInto(**file, memory, range.offset, range.size);
  if (!bytes) return At(first, bytes.error());
  return VerifyAll(range, *bytes, delivery);
}

Status ChunkReader::FetchToScratch(const transfer::PlanRange& range, transfer::Delivery& delivery) {
  const transfer::PlanChunk& first = source_.plan.chunks[range.first_chunk];
  const auto file = source_.files.Open(range);
  if (!file) return At(first, file.error());
  if (IsReadInBlocks(**file)) return FetchInPieces(**file, range, delivery);
  const auto fetched = pipeline::ReadRange(**file, source_.pool, range.offset, range.size);
  if (!fetched) return At(first, fetched.error());
  return VerifyAll(range, fetched->bytes, delivery);
}

// Little memory, used again and again, stays in the cache.
Status ChunkReader::FetchInPieces(const ReadableFile& file, const transfer::PlanRange& range,
                                  transfer::Delivery& delivery) {
  const std::span<const transfer::PlanChunk> chunks = source_.plan.ChunksOf(range);
  std::uint64_t memory_size = 0;
  for (auto rest = chunks; !rest.empty(); rest = rest.subspan(FirstPiece(rest).size())) {
    memory_size = std::max(memory_size, SizeOf(FirstPiece(rest)));
  }
  const auto memory = source_.pool.AcquireScratch(memory_size);
  if (!memory) return At(chunks.front(), memory.error());
  for (auto rest = chunks; !rest.empty();) {
    const std::span<const transfer::PlanChunk> piece = FirstPiece(rest);
    const MutableByteSpan stored = memory->bytes().first(SizeOf(piece));
    SEALPOINT_RETURN_IF_ERROR(Read(file, piece, stored));
    for (const transfer::PlanChunk& chunk : piece) {
      const ByteSpan of_chunk =
          stored.subspan(chunk.offset - piece.front().offset, chunk.stored_size);
      SEALPOINT_RETURN_IF_ERROR(Deliver(chunk, of_chunk, delivery));
    }
    rest = rest.subspan(piece.size());
  }
  return {};
}

// The decoder does not run over bytes that nobody vouches for.
Status ChunkReader::VerifyAll(const transfer::PlanRange& range, ByteSpan bytes,
                              transfer::Delivery& delivery) {
  for (const transfer::PlanChunk& chunk : source_.plan.ChunksOf(range)) {
    const ByteSpan stored = bytes.subspan(chunk.offset - range.offset, chunk.stored_size);
    Status status = CheckStored(chunk, ComputeDigest(stored));
    if (!status.ok()) return At(chunk, std::move(status));
    SEALPOINT_RETURN_IF_ERROR(Deliver(chunk, stored, delivery));
  }
  return {};
}

Status ChunkReader::Deliver(const transfer::PlanChunk& chunk, ByteSpan verified,
                            transfer::Delivery& delivery) {
  if (const MutableByteSpan held = HeldBase(chunk); !held.empty()) {
    return At(chunk, DecodeChanges(chunk, verified, /*holds_base=*/true, held));
  }
  Result<ByteSpan> raw = Decode(chunk, verified);
  if (!raw) return At(chunk, std::move(raw).error());
  return At(chunk, delivery.Begin(chunk, *raw));
}

Status ChunkReader::Read(const ReadableFile& file, std::span<const transfer::PlanChunk> chunks,
                         MutableByteSpan to) {
  const std::uint64_t offset = chunks.front().offset;
  const std::uint64_t block_size = IsReadInBlocks(file) ? kBlockBytes : to.size();
  device::StagingBuffer aligned;
  if (IsReadInBlocks(file) && IsSlowTarget(offset, to)) {
    auto scratch = source_.pool.AcquireScratch(std::min(block_size, to.size()));
    if (!scratch) return At(chunks.front(), scratch.error());
    aligned = *std::move(scratch);
  }
  std::uint64_t fetched = 0;
  MutableByteSpan block;  // read last; ends at `fetched`
  for (const transfer::PlanChunk& chunk : chunks) {
    const std::uint64_t begin = chunk.offset - offset;
    const std::uint64_t end = begin + chunk.stored_size;
    std::optional<Digest> found;  // at once, if all of it is in one block
    for (std::uint64_t at = begin; at < end;) {
      if (at == fetched) {
        const MutableByteSpan target =
            to.subspan(fetched, std::min(block_size, to.size() - fetched));
        block = aligned.empty() ? target : aligned.bytes().first(target.size());
        Status status = file.ReadAt(offset + fetched, block);
        if (!status.ok()) return At(chunk, std::move(status));
        fetched += block.size();
        if (!aligned.empty()) transfer::CopyPastCaches(block, target);
      }
      const ByteSpan part =
          block.subspan(at - (fetched - block.size()), std::min(end, fetched) - at);
      if (part.size() == chunk.stored_size) {
        found = ComputeDigest(part);
      } else {
        hasher_.Update(part);
      }
      at += part.size();
    }
    Status status = CheckStored(chunk, found ? *found : hasher_.Finish());
    if (!status.ok()) return At(chunk, std::move(status));
  }
  return {};
}

Result<ByteSpan> ChunkReader::Decode(const transfer::PlanChunk& chunk, ByteSpan verified) {
  if (chunk.codec == Codec::kNone) return verified;
  if (decoder_.decoded.size() < chunk.raw_size) {
    SEALPOINT_RETURN_IF_ERROR(container::ResizeBytes(decoder_.decoded, chunk.raw_size));
  }
  const MutableByteSpan raw = MutableByteSpan(decoder_.decoded).first(chunk.raw_size);
  if (chunk.codec == Codec::kChanges) {
    SEALPOINT_RETURN_IF_ERROR(DecodeChanges(chunk, verified, /*holds_base=*/false, raw));
    return ByteSpan(raw);
  }
  SEALPOINT_RETURN_IF_ERROR(decoder_.codec.Decode(chunk.codec, chunk.element_size, verified, raw));
  SEALPOINT_RETURN_IF_ERROR(CheckRaw(chunk, ComputeDigest(raw)));
  return ByteSpan(raw);
}

Status ChunkReader::DecodeChanges(const transfer::PlanChunk& chunk, ByteSpan verified,
                                  bool holds_base, MutableByteSpan raw) {
  if (!holds_base) {
    const ChangedElements& changed = source_.plan.changed[chunk.changed];
    if (!decoder_.below) {
      decoder_.below = std::make_unique<ChunkDecoder>();
      decoder_.below->base_chunks = decoder_.base_chunks;
    }
    SEALPOINT_RETURN_IF_ERROR(
        source_.base->ReadAsBase(changed.tensor, changed.region, *decoder_.below, raw));
  }
  digest::Hasher& hasher = decoder_.hasher;
  const Status applied = decoder_.codec.ApplyChanges(chunk.element_size, verified, raw,
                                                     [&](ByteSpan block) { hasher.Update(block); });
  const Digest found = hasher.Finish();
  SEALPOINT_RETURN_IF_ERROR(applied);
  return CheckRaw(chunk, found);
}

MutableByteSpan ChunkReader::HeldBase(const transfer::PlanChunk& chunk) const {
  if (!source_.holds_base || chunk.codec != Codec::kChanges || chunk.copy_count != 1) return {};
  const transfer::PlanCopy& copy = source_.plan.copies[chunk.first_copy];
  const bool is_whole =
      copy.way() == transfer::CopyWay::kCopy && copy.element_size() == chunk.raw_size;
  return is_whole ? MutableByteSpan(copy.first_byte(), chunk.raw_size) : MutableByteSpan();
}

// What an inner frame named already stays: the offset of a codec's error is one in the chunk.
Status ChunkReader::At(const transfer::PlanChunk& chunk, Status error) const {
  if (error.ok()) return error;
  return source_.plan.AtItem(
      chunk.name, std::move(error)
                      .AtPath(JoinPath(source_.directory_path,
                                       format::BlobName(source_.index.blob(chunk.blob).id)))
                      .AtOffset(chunk.offset));
}

}  // namespace sealpoint::internal::load
