// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/encode_intake.h"

#include <cstdint>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::transfer {

EncodeIntake::~EncodeIntake() {
  if (codec_) context_.engine.codecs.Return(std::move(codec_));
}

Status EncodeIntake::Begin(SourceReader& source, const ShardEncoding& encoding) {
  if (!codec_) codec_ = context_.engine.codecs.Take();
  const Digest* expected = nullptr;
  if (!source.view().is_host()) {
    SEALPOINT_ASSIGN_OR_RETURN(expected, device_.QueueDigests(source, encoding));
  }
  const std::uint64_t chunk_count = encoding.chunk_count();
  for (std::uint64_t chunk = 0; chunk < chunk_count; ++chunk) {
    SEALPOINT_RETURN_IF_ERROR(AppendChunk(source, encoding, chunk * encoding.chunk_size,
                                          expected == nullptr ? nullptr : expected + chunk));
  }
  return {};
}

Result<EncodeIntake::Encoded> EncodeIntake::Encode(const ShardEncoding& encoding,
                                                   std::uint64_t begin, ByteSpan raw,
                                                   MutableByteSpan out,
                                                   const codec::VisitBlock& visit) {
  if (encoding.base != nullptr) {
    const ByteSpan base(encoding.base + begin, raw.size());
    SEALPOINT_ASSIGN_OR_RETURN(const std::size_t size,
                               codec_->EncodeChanges(encoding.element_size, raw, base, out, visit));
    if (size < raw.size()) return Encoded{.codec = Codec::kChanges, .size = size};
  }
  if (encoding.codec == Codec::kNone) return Encoded();
  SEALPOINT_ASSIGN_OR_RETURN(
      const std::size_t size,
      codec_->Encode(encoding.codec, encoding.codec_level, encoding.element_size, raw, out));
  return size < raw.size() ? Encoded{.codec = encoding.codec, .size = size} : Encoded();
}

Status EncodeIntake::AppendChunk(SourceReader& source, const ShardEncoding& encoding,
                                 std::uint64_t begin, const Digest* expected) {
  const std::uint64_t size = std::min(encoding.chunk_size, encoding.raw_size - begin);
  // One buffer for both sides: a thread that held one and waited for a second might wait for ever.
  // Dense host memory with a base is read where it is: little of it is stored.
  const bool stays = encoding.base != nullptr && source.view().is_host() && source.is_dense();
  const std::uint64_t raw_room = stays ? 0 : AlignUp(size, kDirectIoAlignmentBytes);
  const std::size_t bound = codec::ChunkCodec::EncodedSizeBound(size);
  SEALPOINT_ASSIGN_OR_RETURN(const device::StagingBuffer scratch,
                             context_.engine.pool->AcquireScratch(raw_room + bound));
  const MutableByteSpan out = scratch.bytes().subspan(raw_room, bound);
  StoredChunk chunk{.stored_size = size};
  ByteSpan raw = stays ? source.Next(size) : scratch.bytes().first(size);
  if (!stays) {
    const Result<Digest> taken = TakeChunk(source, scratch.bytes().first(size), expected);
    if (!taken.ok()) {
      context_.copies.Stop();  // nothing may write into the scratch buffer any more
      return taken.error();
    }
    chunk.raw_digest = *taken;
  }
  const auto visit = [&](ByteSpan block) {
    if (stays) hasher_.Update(block);
    const auto at = static_cast<std::uint64_t>(block.data() - raw.data());
    AddFingerprint(context_.chunks, encoding, begin + at, block);
  };
  if (encoding.base == nullptr) visit(raw);
  SEALPOINT_ASSIGN_OR_RETURN(const Encoded encoded, Encode(encoding, begin, raw, out, visit));
  if (stays) chunk.raw_digest = hasher_.Finish();
  if (encoded.codec == Codec::kNone) {
    context_.chunks.AddChunk(chunk);
    return context_.stream.Append(raw);
  }
  SEALPOINT_RETURN_IF_ERROR(context_.stream.Append(out.first(encoded.size), hasher_));
  chunk.codec = encoded.codec;
  chunk.stored_size = encoded.size;
  chunk.stored_digest = hasher_.Finish();
  context_.chunks.AddChunk(chunk);
  return {};
}

Result<Digest> EncodeIntake::TakeChunk(SourceReader& source, MutableByteSpan raw,
                                       const Digest* expected) {
  if (!source.view().is_host()) return device_.CopyNow(source, raw, expected);
  for (std::uint64_t done = 0; done < raw.size();) {
    const ByteSpan piece = source.Next(raw.size() - done);
    hasher_.CopyAndUpdate(piece, raw.subspan(done, piece.size()));
    done += piece.size();
  }
  return hasher_.Finish();
}

}  // namespace sealpoint::internal::transfer
