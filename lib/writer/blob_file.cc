// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_file.h"

#include <algorithm>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/writer/blob_summary_parts.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal {
namespace {

// Shards below this size share staging buffers: many are written at once.
constexpr std::uint64_t kBorrowedSizeMin = kMiB;
constexpr std::uint64_t kBorrowedChunksMax = 4096;

// Queues work on the source's memory behind what is on its stream.
template <typename QueueIt>
Result<DeviceCopies::Point> QueueBehindStream(DeviceCopies& copies, const SourceReader& source,
                                              std::uint64_t bytes, const QueueIt& queue_it) {
  SEALPOINT_RETURN_IF_ERROR(copies.FollowStream(source.view().device, source.view().stream));
  return copies.Queue(source.view().device, bytes, queue_it);
}

}  // namespace

Result<std::unique_ptr<BlobFile>> BlobFile::Create(const Context& context, Directory& directory,
                                                   const AttemptId& attempt, std::uint64_t step) {
  FileHeader header{
      .kind = FileKind::kBlob, .features = {}, .id = {}, .attempt = attempt, .step = step};
  SEALPOINT_ASSIGN_OR_RETURN(header.id, BlobId::Random());
  SEALPOINT_RETURN_IF_ERROR(context.engine.TakeBlobSlot());
  std::unique_ptr<BlobFile> blob(new BlobFile(context, header));
  blob->has_slot_ = true;
  SEALPOINT_ASSIGN_OR_RETURN(blob->file_, CreateFile(context.engine, directory, header.id));
  blob->stream_.Bind(*blob->file_);
  const Status begun = blob->stream_.Append(blob->layout_.header());
  if (begun.ok()) return blob;
  blob.reset();
  static_cast<void>(directory.Remove(BlobName(header.id)));
  return begun;
}

Result<std::unique_ptr<WritableFile>> BlobFile::CreateFile(EngineParts& engine,
                                                           Directory& directory, const BlobId& id) {
  const IoMode mode = engine.options.direct_io ? IoMode::kDirect : IoMode::kBuffered;
  auto file = directory.CreateExclusive(BlobName(id), mode);
  // An error may hide that the file was made; only a name that was taken is another's (R-CMT-15).
  if (!file.ok() && file.error().code() != Code::kAlreadyExists) {
    static_cast<void>(directory.Remove(BlobName(id)));
  }
  return file;
}

Result<std::unique_ptr<BlobFile>> BlobFile::CreateHeld(const Context& context, std::uint64_t step) {
  FileHeader header{.kind = FileKind::kBlob, .features = {}, .id = {}, .attempt = {}, .step = step};
  SEALPOINT_ASSIGN_OR_RETURN(header.id, BlobId::Random());
  std::unique_ptr<BlobFile> blob(new BlobFile(context, header));
  SEALPOINT_RETURN_IF_ERROR(blob->stream_.Append(blob->layout_.header()));
  return blob;
}

Status BlobFile::Bind(Directory& directory, const AttemptId& attempt) {
  has_slot_ = true;
  layout_.SetAttempt(attempt);
  SEALPOINT_ASSIGN_OR_RETURN(file_, CreateFile(engine_, directory, id()));
  later_copies_.Hash(layout_);
  // The first buffer cannot have been written yet: the stream had no file.
  stream_.ReplaceFront(layout_.header());
  stream_.Bind(*file_);
  return {};
}

BlobFile::BlobFile(const Context& context, const FileHeader& header)
    : engine_(context.engine),
      copies_(context.copies),
      layout_(header, context.tensors),
      stream_(*engine_.pool, *engine_.io),
      in_flight_(copies_) {}

BlobFile::~BlobFile() {
  if (codec_) engine_.codecs.Return(std::move(codec_));
  if (has_slot_) engine_.ReturnBlobSlot();
}

Status BlobFile::AddShard(std::uint32_t tensor, const Region& region, SourceReader& source,
                          const ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t first_record, AppendShard(source, encoding));
  layout_.DeclareShard(tensor, region, first_record);
  return {};
}

Status BlobFile::AddObject(std::string_view name, std::string_view media_type, SourceReader source,
                           const ShardEncoding& encoding) {
  std::uint32_t first_record = 0;
  if (encoding.raw_size > 0) {
    SEALPOINT_ASSIGN_OR_RETURN(first_record, AppendShard(source, encoding));
  }
  layout_.DeclareObject(name, media_type, encoding, first_record);
  return {};
}

Result<std::uint32_t> BlobFile::AppendShard(SourceReader& source, const ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const BlobLayout::ShardPlace place, layout_.AddShard(encoding));
  SEALPOINT_RETURN_IF_ERROR(stream_.AppendZeros(place.padding));
  SEALPOINT_ASSIGN_OR_RETURN(const Digest* const expected, QueueDigests(source, encoding));
  // A copy in staging memory would be a second one, and one that no cache holds.
  const bool may_borrow =
      source.is_dense() && MayBorrow(source.view(), encoding.codec, encoding.raw_size);
  if (may_borrow && file_ && !is_direct()) {
    SEALPOINT_RETURN_IF_ERROR(AppendBorrowedChunks(source, encoding));
  } else if (may_borrow && !file_) {
    SEALPOINT_RETURN_IF_ERROR(AppendLaterCopiedChunks(source, encoding));
  } else {
    for (std::uint64_t chunk = 0; chunk < encoding.chunk_count(); ++chunk) {
      SEALPOINT_RETURN_IF_ERROR(
          AppendChunk(source, encoding,
                      {.raw_size = encoding.raw_size_of(chunk),
                       .expected = expected == nullptr ? nullptr : expected + chunk}));
    }
  }
  return place.first_record;
}

bool BlobFile::MayBorrow(const MemoryView& source, Codec codec, std::uint64_t raw_size) {
  return source.is_host() && codec == Codec::kNone && raw_size >= kBorrowedSizeMin;
}

// Some at a time: memory may not have room for the digests of all, and the first write may fail.
Status BlobFile::AppendBorrowedChunks(SourceReader& source, const ShardEncoding& encoding) {
  for (std::uint64_t chunk = 0; chunk < encoding.chunk_count();) {
    const std::uint64_t end = std::min(encoding.chunk_count(), chunk + kBorrowedChunksMax);
    BorrowedChunks& chunks = borrowed_.emplace_back();
    chunks.first_record = layout_.AddChunk({.stored_size = encoding.raw_size_of(chunk)});
    for (std::uint64_t next = chunk + 1; next < end; ++next) {
      layout_.AddChunk({.stored_size = encoding.raw_size_of(next)});
    }
    chunks.digests.resize(end - chunk);
    const ByteSpan bytes = source.Next(std::min(end * encoding.chunk_size, encoding.raw_size) -
                                       chunk * encoding.chunk_size);
    SEALPOINT_RETURN_IF_ERROR(stream_.AppendBorrowed(bytes, encoding.chunk_size, chunks.digests));
    chunk = end;
  }
  return {};
}

// The buffers stay with the stream, as it has no file yet: so all copies can be made at once, and
// hashed when there is one.
Status BlobFile::AppendLaterCopiedChunks(SourceReader& source, const ShardEncoding& encoding) {
  for (std::uint64_t chunk = 0; chunk < encoding.chunk_count(); ++chunk) {
    const ByteSpan from = source.Next(encoding.raw_size_of(chunk));
    std::vector<MutableByteSpan> to;
    for (std::uint64_t done = 0; done < from.size(); done += to.back().size()) {
      SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan window, stream_.Window());
      to.push_back(window.first(std::min<std::uint64_t>(window.size(), from.size() - done)));
      stream_.Advance(to.back().size());
    }
    later_copies_.Add(from, std::move(to), layout_.AddChunk({.stored_size = from.size()}));
  }
  return {};
}

// After an error the stream has given its buffers back: then nothing may be copied into them.
Status BlobFile::CompleteBorrowed() {
  if (borrowed_.empty() && !later_copies_.has_unmade()) return {};
  const Status status = stream_.WaitForBorrowed();
  if (status.ok()) later_copies_.Make(engine_.options.snapshot_thread_count);
  for (const BorrowedChunks& chunks : borrowed_) {
    for (std::size_t i = 0; status.ok() && i < chunks.digests.size(); ++i) {
      layout_.SetDigest(chunks.first_record + i, chunks.digests[i]);
    }
  }
  borrowed_.clear();
  return status;
}

Status BlobFile::AppendChunk(SourceReader& source, const ShardEncoding& encoding,
                             const SourceChunk& chunk) {
  if (encoding.codec != Codec::kNone) return AppendCodedChunk(source, encoding, chunk);
  if (!source.view().is_host()) return AppendInFlightChunk(source, chunk);
  return AppendRawChunk(source, chunk);
}

Status BlobFile::AppendRawChunk(SourceReader& source, const SourceChunk& chunk) {
  for (std::uint64_t done = 0; done < chunk.raw_size;) {
    const ByteSpan piece = source.Next(chunk.raw_size - done);
    SEALPOINT_RETURN_IF_ERROR(stream_.Append(piece, hasher_));
    done += piece.size();
  }
  layout_.AddChunk({.stored_size = chunk.raw_size, .raw_digest = hasher_.Finish()});
  return {};
}

Status BlobFile::AppendInFlightChunk(SourceReader& source, const SourceChunk& chunk) {
  in_flight_.BeginChunk(chunk, layout_.AddChunk({.stored_size = chunk.raw_size}));
  for (std::uint64_t done = 0; done < chunk.raw_size;) {
    SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan window, stream_.Window());
    const MutableByteSpan piece =
        window.first(std::min<std::uint64_t>(window.size(), chunk.raw_size - done));
    SEALPOINT_ASSIGN_OR_RETURN(
        const DeviceCopies::Point arrival,
        QueueBehindStream(copies_, source, piece.size(),
                          [&](CopyQueue& queue) { return source.QueueNext(queue, piece); }));
    in_flight_.AddBytes(piece, stream_.offset(), arrival);
    // Before Advance, which may write a full buffer: not while the device still writes into it.
    stream_.HoldFrom(in_flight_.first_offset());
    stream_.Advance(piece.size());
    done += piece.size();
  }
  return {};
}

Status BlobFile::CompleteOldest() {
  SEALPOINT_RETURN_IF_ERROR(in_flight_.CompleteOldest(layout_));
  stream_.HoldFrom(in_flight_.first_offset());
  return {};
}

Result<const Digest*> BlobFile::QueueDigests(const SourceReader& source,
                                             const ShardEncoding& encoding) {
  const MemoryView& view = source.view();
  if (!checks_copies_ || view.is_host() || !source.is_dense()) return nullptr;
  const Status offered = engine_.device->CheckDigests(view.device);
  if (!offered.ok()) {
    return MakeError(Code::kUnsupported, "copies cannot be checked: ", offered.message());
  }
  const DeviceChunks chunks{.data = source.position(),
                            .size_bytes = encoding.raw_size,
                            .chunk_size_bytes = encoding.chunk_size};
  std::vector<Digest>& digests = device_digests_.emplace_back(chunks.count());
  SEALPOINT_RETURN_IF_ERROR(QueueBehindStream(copies_, source, 0, [&](CopyQueue& queue) {
                              return queue.QueueDigests(chunks, digests);
                            }).status());
  return digests.data();
}

Result<Digest> BlobFile::TakeChunk(SourceReader& source, MutableByteSpan raw,
                                   const Digest* expected) {
  if (source.view().is_host()) {
    for (std::uint64_t done = 0; done < raw.size();) {
      const ByteSpan piece = source.Next(raw.size() - done);
      hasher_.CopyAndUpdate(piece, raw.subspan(done, piece.size()));
      done += piece.size();
    }
  } else {
    SEALPOINT_ASSIGN_OR_RETURN(
        const DeviceCopies::Point arrival,
        QueueBehindStream(copies_, source, raw.size(),
                          [&](CopyQueue& queue) { return source.QueueNext(queue, raw); }));
    SEALPOINT_RETURN_IF_ERROR(copies_.Wait(arrival));
    hasher_.Update(raw);
  }
  const Digest digest = hasher_.Finish();
  SEALPOINT_RETURN_IF_ERROR(CheckArrived(digest, expected));
  return digest;
}

Status BlobFile::AppendCodedChunk(SourceReader& source, const ShardEncoding& encoding,
                                  const SourceChunk& chunk) {
  if (!codec_) codec_ = engine_.codecs.Take();
  // One buffer for both sides: a thread that held one and waited for a second might wait for ever.
  const std::uint64_t size = chunk.raw_size;
  const std::uint64_t raw_room = AlignUp(size, kFileAlignment);
  const std::size_t bound = ChunkCodec::EncodedSizeBound(size);
  SEALPOINT_ASSIGN_OR_RETURN(const StagingBuffer scratch,
                             engine_.pool->AcquireScratch(raw_room + bound));
  const MutableByteSpan raw = scratch.bytes().first(size);
  const MutableByteSpan out = scratch.bytes().subspan(raw_room, bound);
  const Result<Digest> taken = TakeChunk(source, raw, chunk.expected);
  if (!taken.ok()) {
    copies_.Stop();  // nothing may write into the scratch buffer any more
    return taken.error();
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      const std::size_t stored_size,
      codec_->Encode(encoding.codec, encoding.codec_level, encoding.element_size, raw, out));
  StoredChunk stored{.stored_size = size, .raw_digest = *taken};
  if (stored_size >= size) {
    layout_.AddChunk(stored);
    return stream_.Append(raw);
  }
  stored.codec = encoding.codec;
  stored.stored_size = stored_size;
  SEALPOINT_RETURN_IF_ERROR(stream_.Append(out.first(stored_size), hasher_));
  stored.stored_digest = hasher_.Finish();
  layout_.AddChunk(stored);
  return {};
}

Status BlobFile::AppendTail() {
  while (has_in_flight()) SEALPOINT_RETURN_IF_ERROR(CompleteOldest());
  SEALPOINT_RETURN_IF_ERROR(CompleteBorrowed());
  SEALPOINT_RETURN_IF_ERROR(layout_.End([this](std::uint64_t zeros, ByteSpan bytes) {
    const Status padded = stream_.AppendZeros(zeros);
    return padded.ok() ? stream_.Append(bytes) : padded;
  }));
  return stream_.Flush();
}

Result<BlobSummary> BlobFile::Finish(const Limits& limits) {
  // No summary before the blob is durable: whoever holds one may commit it (R-CMT-10).
  SEALPOINT_RETURN_IF_ERROR(file_->Sync());
  SEALPOINT_RETURN_IF_ERROR(file_->Close());
  auto summary = DecodeSummary(std::make_shared<const Bytes>(layout_.TakeSummary()), limits);
  if (summary.ok()) return InternalAccess::MakeSummary(*std::move(summary));
  if (summary.error().code() != Code::kCorrupt) return summary.error();
  // What this process just encoded is not damaged: the caller must have given a region twice.
  const Place& place = summary.error().place();
  return InvalidArgument(summary.error().message()).AtTensor(place.tensor).AtObject(place.object);
}

}  // namespace sealpoint::internal
