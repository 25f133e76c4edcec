// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/device_intake.h"

#include <algorithm>
#include <optional>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::transfer {
namespace {

// Queues work on the source's memory behind what is on its stream.
template <typename QueueIt>
Result<device::DeviceCopies::Point> QueueBehindStream(device::DeviceCopies& copies,
                                                      const SourceReader& source,
                                                      std::uint64_t bytes,
                                                      const QueueIt& queue_it) {
  SEALPOINT_RETURN_IF_ERROR(copies.FollowStream(source.view().device, source.view().stream));
  return copies.Queue(source.view().device, bytes, queue_it);
}

Result<device::DeviceCopies::Point> QueueCopy(device::DeviceCopies& copies, SourceReader& source,
                                              MutableByteSpan to) {
  return QueueBehindStream(copies, source, to.size(),
                           [&](device::CopyQueue& queue) { return source.QueueNext(queue, to); });
}

// Device if the digest of what arrived is not the one that the device computed, if it did.
Status CheckArrived(const Digest& found, const Digest* expected) {
  if (expected == nullptr || found == *expected) return {};
  return MakeError(Code::kDevice,
                   "device copy corrupted: digest mismatch, computed in device memory ",
                   expected->ToHex(), ", of the copy ", found.ToHex());
}

}  // namespace

Status DeviceIntake::Begin(SourceReader& source, const ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const Digest* const expected, QueueDigests(source, encoding));
  const std::uint64_t chunk_count = encoding.chunk_count();
  for (std::uint64_t chunk = 0; chunk < chunk_count; ++chunk) {
    const std::uint64_t size = encoding.raw_size_of(chunk);
    chunks_.push_back({.record = context_.chunks.AddChunk({.stored_size = size}),
                       .expected = expected == nullptr ? nullptr : expected + chunk,
                       .bytes_left = size,
                       .encoding = encoding});
  }
  pipeline::FileStream& stream = context_.stream;
  for (std::uint64_t done = 0; done < encoding.raw_size;) {
    SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan window, stream.Window());
    const MutableByteSpan piece =
        window.first(std::min<std::uint64_t>(window.size(), encoding.raw_size - done));
    SEALPOINT_RETURN_IF_ERROR(QueuePiece(source, piece, encoding.chunk_size, done));
    // Before Advance, which may write a full buffer: not while the device still writes into it.
    HoldStream();
    stream.Advance(piece.size());
    done += piece.size();
  }
  return {};
}

Status DeviceIntake::QueuePiece(SourceReader& source, MutableByteSpan piece,
                                std::uint64_t chunk_size, std::uint64_t offset_in_shard) {
  SEALPOINT_ASSIGN_OR_RETURN(const device::DeviceCopies::Point arrival,
                             QueueCopy(context_.copies, source, piece));
  const std::uint64_t offset = context_.stream.offset();
  for (std::uint64_t at = 0; at < piece.size();) {
    const std::uint64_t left_of_chunk = chunk_size - (offset_in_shard + at) % chunk_size;
    const std::uint64_t size = std::min<std::uint64_t>(left_of_chunk, piece.size() - at);
    parts_.push_back({piece.subspan(at, size), offset + at, arrival, offset_in_shard + at});
    at += size;
  }
  return {};
}

void DeviceIntake::HoldStream() {
  context_.stream.HoldFrom(parts_.empty() ? std::nullopt : std::optional(parts_.front().offset));
}

Result<bool> DeviceIntake::CompleteOldest() {
  if (parts_.empty()) return false;
  const Part part = parts_.front();
  SEALPOINT_RETURN_IF_ERROR(context_.copies.Wait(part.arrival));
  hasher_.Update(part.bytes);
  parts_.pop_front();
  Chunk& chunk = chunks_.front();
  AddFingerprint(context_.chunks, chunk.encoding, part.offset_in_shard, part.bytes);
  chunk.bytes_left -= part.bytes.size();
  if (chunk.bytes_left == 0) {
    const Digest digest = hasher_.Finish();
    context_.chunks.SetDigest(chunk.record, digest);
    SEALPOINT_RETURN_IF_ERROR(CheckArrived(digest, chunk.expected));
    chunks_.pop_front();
  }
  HoldStream();
  return true;
}

Result<const Digest*> DeviceIntake::QueueDigests(const SourceReader& source,
                                                 const ShardEncoding& encoding) {
  if (!context_.checks_copies || !source.is_dense()) return nullptr;
  const Status offered = context_.engine.device->CheckKernels(source.view().device);
  if (!offered.ok()) {
    return MakeError(Code::kUnsupported, "copies cannot be checked: ", offered.message());
  }
  const device::DeviceChunks chunks{.data = source.position(),
                                    .size_bytes = encoding.raw_size,
                                    .chunk_size_bytes = encoding.chunk_size};
  std::vector<Digest>& digests = device_digests_.emplace_back(chunks.count());
  SEALPOINT_RETURN_IF_ERROR(
      QueueBehindStream(context_.copies, source, 0, [&](device::CopyQueue& queue) {
        return queue.QueueDigests(chunks, digests);
      }).status());
  return digests.data();
}

Result<Digest> DeviceIntake::CopyNow(SourceReader& source, MutableByteSpan to,
                                     const Digest* expected) {
  SEALPOINT_ASSIGN_OR_RETURN(const device::DeviceCopies::Point arrival,
                             QueueCopy(context_.copies, source, to));
  SEALPOINT_RETURN_IF_ERROR(context_.copies.Wait(arrival));
  const Digest digest = ComputeDigest(to);
  SEALPOINT_RETURN_IF_ERROR(CheckArrived(digest, expected));
  return digest;
}

}  // namespace sealpoint::internal::transfer
