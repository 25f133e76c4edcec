// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_file.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/format/trailer.h"
#include "lib/writer/blob_summary_parts.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint::internal {
namespace {

// Upper bound of what a manifest entry takes beside its texts: table, vectors, padding.
constexpr std::uint64_t kManifestEntrySize = 256;
// Upper bound of the numbers of one dimension: shape, offset and extent.
constexpr std::uint64_t kManifestDimensionSize = 64;

// Shards below this size share staging buffers: many are written at once.
constexpr std::uint64_t kBorrowedSizeMin = kMiB;
constexpr std::uint64_t kBorrowedChunksMax = 4096;

// A text with its offset, length, terminator and padding.
std::uint64_t RoomForText(std::string_view text) { return text.size() + 16; }

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
  const Status begun = blob->stream_.Append(blob->header_bytes_);
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
  SEALPOINT_RETURN_IF_ERROR(blob->stream_.Append(blob->header_bytes_));
  return blob;
}

Status BlobFile::Bind(Directory& directory, const AttemptId& attempt) {
  has_slot_ = true;
  header_.attempt = attempt;
  EncodeHeader(header_, header_bytes_);
  SEALPOINT_ASSIGN_OR_RETURN(file_, CreateFile(engine_, directory, header_.id));
  later_copies_.Hash(records_);
  // The first buffer cannot have been written yet: the stream had no file.
  stream_.ReplaceFront(header_bytes_);
  stream_.Bind(*file_);
  return {};
}

BlobFile::BlobFile(const Context& context, const FileHeader& header)
    : engine_(context.engine),
      copies_(context.copies),
      header_(header),
      header_bytes_(kHeaderSize),
      stream_(*engine_.pool, *engine_.io),
      in_flight_(copies_),
      tensors_(context.tensors),
      manifest_(tensors_) {
  EncodeHeader(header_, header_bytes_);
}

BlobFile::~BlobFile() {
  if (codec_) engine_.codecs.Return(std::move(codec_));
  if (has_slot_) engine_.ReturnBlobSlot();
}

std::uint64_t BlobFile::projected_size() const {
  return stream_.offset() + 2 * records_.size() + manifest_estimate_ + kTrailerSize +
         kFileAlignment;
}

std::uint64_t BlobFile::RoomToDeclare(const TensorFacts& tensor) {
  std::uint64_t room = kLargeShardAlignment + 2 * kManifestEntrySize +
                       2 * kManifestDimensionSize * tensor.shape.size() + RoomForText(tensor.name);
  for (const std::string& text : tensor.placement) room += RoomForText(text);
  return room;
}

std::uint64_t BlobFile::RoomToDeclare(std::string_view object, std::string_view media_type) {
  return kLargeShardAlignment + kManifestEntrySize + RoomForText(object) + RoomForText(media_type);
}

std::uint64_t BlobFile::RoomForBytes(const ShardEncoding& encoding) {
  return encoding.raw_size +
         2 * kRecordSize * DivideRoundUp(encoding.raw_size, encoding.chunk_size);
}

Status BlobFile::AddShard(std::uint32_t tensor, const Region& region, SourceReader& source,
                          const ShardEncoding& encoding) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::uint32_t first_record, AppendShard(source, encoding));
  Declare(tensor);
  manifest_.AddShard(tensor, region, first_record);
  manifest_estimate_ += kManifestEntrySize + kManifestDimensionSize * region.box.extent.size();
  return {};
}

Status BlobFile::AddObject(std::string_view name, std::string_view media_type, SourceReader source,
                           const ShardEncoding& encoding) {
  ManifestObject object{.name = std::string(name),
                        .media_type = std::string(media_type),
                        .size = encoding.raw_size,
                        .chunk_size = encoding.chunk_size,
                        .first_record = 0};
  if (encoding.raw_size > 0) {
    SEALPOINT_ASSIGN_OR_RETURN(object.first_record, AppendShard(source, encoding));
  }
  manifest_estimate_ += RoomToDeclare(name, media_type);
  manifest_.AddObject(std::move(object));
  return {};
}

void BlobFile::Declare(std::uint32_t tensor) {
  if (manifest_.AddTensor(tensor)) manifest_estimate_ += RoomToDeclare(tensors_[tensor]);
}

Result<std::uint32_t> BlobFile::AppendShard(SourceReader& source, const ShardEncoding& encoding) {
  const std::uint64_t first_record = records_.size() / kRecordSize;
  const std::uint64_t chunks = DivideRoundUp(encoding.raw_size, encoding.chunk_size);
  if (first_record + chunks > std::numeric_limits<std::uint32_t>::max()) {
    return MakeError(Code::kLimitExceeded, "a blob cannot have more than 2^32 - 1 chunks");
  }
  SEALPOINT_RETURN_IF_ERROR(stream_.AlignTo(ShardAlignment(encoding.raw_size)));
  SEALPOINT_ASSIGN_OR_RETURN(const Digest* const expected, QueueDigests(source, encoding));
  // A copy in staging memory would be a second one, and one that no cache holds.
  if (file_ && !is_direct() && source.is_dense() &&
      MayBorrow(source.view(), encoding.codec, encoding.raw_size)) {
    SEALPOINT_RETURN_IF_ERROR(AppendBorrowedChunks(source, encoding, chunks));
  } else if (!file_ && source.is_dense() &&
             MayBorrow(source.view(), encoding.codec, encoding.raw_size)) {
    SEALPOINT_RETURN_IF_ERROR(AppendLaterCopiedChunks(source, encoding, chunks));
  } else {
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      ChunkRecord record = RecordOfChunk(encoding, chunk, stream_.offset());
      SEALPOINT_RETURN_IF_ERROR(
          AppendChunk(source, encoding, record, expected == nullptr ? nullptr : expected + chunk));
      AppendRecord(record);
    }
  }
  ++shard_count_;
  raw_bytes_ += encoding.raw_size;
  return static_cast<std::uint32_t>(first_record);
}

ChunkRecord BlobFile::RecordOfChunk(const ShardEncoding& encoding, std::uint64_t chunk,
                                    std::uint64_t offset) const {
  const auto size = static_cast<std::uint32_t>(
      std::min(encoding.chunk_size, encoding.raw_size - chunk * encoding.chunk_size));
  return {.offset = offset,
          .stored_size = size,
          .raw_size = size,
          .shard = shard_count_,
          .chunk = static_cast<std::uint32_t>(chunk),
          .codec = Codec::kNone,
          .raw_digest = {},
          .stored_digest = {}};
}

void BlobFile::AppendRecord(const ChunkRecord& record) {
  records_.resize(records_.size() + kRecordSize);
  EncodeRecord(record, MutableByteSpan(records_).last(kRecordSize));
}

bool BlobFile::MayBorrow(const MemoryView& source, Codec codec, std::uint64_t raw_size) {
  return source.is_host() && codec == Codec::kNone && raw_size >= kBorrowedSizeMin;
}

// Some at a time: a shard may have more chunks than memory has room for their digests, and the
// first write may fail.
Status BlobFile::AppendBorrowedChunks(SourceReader& source, const ShardEncoding& encoding,
                                      std::uint64_t chunk_count) {
  for (std::uint64_t chunk = 0; chunk < chunk_count;) {
    const std::uint64_t end = std::min(chunk_count, chunk + kBorrowedChunksMax);
    BorrowedChunks& chunks = borrowed_.emplace_back();
    chunks.first_record = records_.size() / kRecordSize;
    chunks.digests.resize(end - chunk);
    const std::uint64_t first_offset = stream_.offset();
    for (std::uint64_t i = chunk; i < end; ++i) {
      AppendRecord(RecordOfChunk(encoding, i, first_offset + (i - chunk) * encoding.chunk_size));
    }
    const ByteSpan bytes = source.Next(std::min(end * encoding.chunk_size, encoding.raw_size) -
                                       chunk * encoding.chunk_size);
    SEALPOINT_RETURN_IF_ERROR(stream_.AppendBorrowed(bytes, encoding.chunk_size, chunks.digests));
    chunk = end;
  }
  return {};
}

// The buffers stay with the stream, as it has no file yet: so all copies can be made at once, and
// hashed when there is one.
Status BlobFile::AppendLaterCopiedChunks(SourceReader& source, const ShardEncoding& encoding,
                                         std::uint64_t chunk_count) {
  for (std::uint64_t chunk = 0; chunk < chunk_count; ++chunk) {
    const ChunkRecord record = RecordOfChunk(encoding, chunk, stream_.offset());
    const ByteSpan from = source.Next(record.raw_size);
    std::vector<MutableByteSpan> to;
    for (std::uint64_t done = 0; done < from.size(); done += to.back().size()) {
      SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan window, stream_.Window());
      to.push_back(window.first(std::min<std::uint64_t>(window.size(), from.size() - done)));
      stream_.Advance(to.back().size());
    }
    later_copies_.Add(from, std::move(to), records_.size() / kRecordSize);
    AppendRecord(record);
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
      const MutableByteSpan bytes =
          MutableByteSpan(records_).subspan((chunks.first_record + i) * kRecordSize, kRecordSize);
      SetRawDigest(bytes, chunks.digests[i]);
    }
  }
  borrowed_.clear();
  return status;
}

Status BlobFile::AppendChunk(SourceReader& source, const ShardEncoding& encoding,
                             ChunkRecord& record, const Digest* expected) {
  if (encoding.codec != Codec::kNone) return AppendCodedChunk(source, encoding, record, expected);
  if (!source.view().is_host()) return AppendInFlightChunk(source, record, expected);
  return AppendRawChunk(source, record);
}

Status BlobFile::AppendRawChunk(SourceReader& source, ChunkRecord& record) {
  for (std::uint64_t done = 0; done < record.raw_size;) {
    const ByteSpan piece = source.Next(record.raw_size - done);
    SEALPOINT_RETURN_IF_ERROR(stream_.Append(piece, hasher_));
    done += piece.size();
  }
  record.raw_digest = hasher_.Finish();
  return {};
}

Status BlobFile::AppendInFlightChunk(SourceReader& source, const ChunkRecord& record,
                                     const Digest* expected) {
  in_flight_.BeginChunk(record, records_.size() / kRecordSize, expected);
  for (std::uint64_t done = 0; done < record.raw_size;) {
    SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan window, stream_.Window());
    const MutableByteSpan piece =
        window.first(std::min<std::uint64_t>(window.size(), record.raw_size - done));
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
  SEALPOINT_RETURN_IF_ERROR(in_flight_.CompleteOldest(records_));
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

Status BlobFile::TakeChunk(SourceReader& source, MutableByteSpan raw, ChunkRecord& record,
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
  record.raw_digest = hasher_.Finish();
  return CheckArrived(record.raw_digest, expected);
}

Status BlobFile::AppendCodedChunk(SourceReader& source, const ShardEncoding& encoding,
                                  ChunkRecord& record, const Digest* expected) {
  if (!codec_) codec_ = engine_.codecs.Take();
  // One buffer for both sides: a thread that held one and waited for a second might wait for ever.
  const std::uint64_t size = record.raw_size;
  const std::uint64_t raw_room = AlignUp(size, kFileAlignment);
  const std::size_t bound = ChunkCodec::EncodedSizeBound(size);
  SEALPOINT_ASSIGN_OR_RETURN(const StagingBuffer scratch,
                             engine_.pool->AcquireScratch(raw_room + bound));
  const MutableByteSpan raw = scratch.bytes().first(size);
  const MutableByteSpan out = scratch.bytes().subspan(raw_room, bound);
  const Status taken = TakeChunk(source, raw, record, expected);
  if (!taken.ok()) {
    copies_.Stop();  // nothing may write into the scratch buffer any more
    return taken;
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      const std::size_t stored_size,
      codec_->Encode(encoding.codec, encoding.codec_level, encoding.element_size, raw, out));
  if (stored_size >= size) return stream_.Append(raw);
  record.codec = encoding.codec;
  record.stored_size = static_cast<std::uint32_t>(stored_size);
  SEALPOINT_RETURN_IF_ERROR(stream_.Append(out.first(stored_size), hasher_));
  record.stored_digest = hasher_.Finish();
  return {};
}

Status BlobFile::AppendTail() {
  while (has_in_flight()) SEALPOINT_RETURN_IF_ERROR(CompleteOldest());
  SEALPOINT_RETURN_IF_ERROR(CompleteBorrowed());
  Trailer trailer{.blob = header_.id,
                  .chunks_end = stream_.offset(),
                  .record_count = static_cast<std::uint32_t>(records_.size() / kRecordSize),
                  .shard_count = shard_count_,
                  .raw_bytes = raw_bytes_,
                  .header_digest = StoredHeaderDigest(header_bytes_)};
  SEALPOINT_RETURN_IF_ERROR(AppendTable(trailer));
  encoded_manifest_ = manifest_.Encode();
  const ByteSpan manifest = encoded_manifest_.bytes;
  if (manifest.empty()) {
    return MakeError(Code::kLimitExceeded, "the manifest of a blob would pass 2 GiB");
  }
  trailer.manifest_size = manifest.size();
  trailer.manifest_digest = ComputeDigest(manifest);
  SEALPOINT_ASSIGN_OR_RETURN(
      const BlobSections sections,
      ComputeSections(trailer.chunks_end, trailer.record_count, trailer.manifest_size));
  trailer.file_size = sections.file_size;
  const TrailerBytes encoded = EncodeTrailer(trailer);
  trailer_bytes_.assign(encoded.begin(), encoded.end());
  static_assert(kRecordSize % kSectionAlignment == 0, "the manifest begins behind the records");
  SEALPOINT_RETURN_IF_ERROR(stream_.Append(manifest));
  SEALPOINT_RETURN_IF_ERROR(stream_.AppendZeros(sections.trailer - stream_.offset()));
  SEALPOINT_RETURN_IF_ERROR(stream_.Append(trailer_bytes_));
  return stream_.Flush();
}

Status BlobFile::AppendTable(Trailer& trailer) {
  const Bytes group_list = EncodeGroupList(records_);
  trailer.group_list_digest = ComputeDigest(group_list);
  SEALPOINT_RETURN_IF_ERROR(stream_.AlignTo(kSectionAlignment));
  SEALPOINT_RETURN_IF_ERROR(stream_.Append(group_list));
  SEALPOINT_RETURN_IF_ERROR(stream_.AlignTo(kSectionAlignment));
  SEALPOINT_RETURN_IF_ERROR(stream_.Append(records_));
  records_ = Bytes();
  return {};
}

Result<BlobSummary> BlobFile::Finish(const Limits& limits) {
  // No summary before the blob is durable: whoever holds one may commit it (R-CMT-10).
  SEALPOINT_RETURN_IF_ERROR(file_->Sync());
  SEALPOINT_RETURN_IF_ERROR(file_->Close());
  auto parts = std::make_shared<const Bytes>(
      JoinSummaryParts(header_bytes_, trailer_bytes_, encoded_manifest_.bytes));
  encoded_manifest_ = {};
  auto summary = DecodeSummary(std::move(parts), limits);
  if (summary.ok()) return InternalAccess::MakeSummary(*std::move(summary));
  if (summary.error().code() != Code::kCorrupt) return summary.error();
  // What this process just encoded is not damaged: the caller must have given a region twice.
  const Place& place = summary.error().place();
  return InvalidArgument(summary.error().message()).AtTensor(place.tensor).AtObject(place.object);
}

}  // namespace sealpoint::internal
