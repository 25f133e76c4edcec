// SPDX-License-Identifier: Apache-2.0
#include "lib/copy/blob_copy.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/container/resize.h"
#include "lib/copy/whole_file.h"
#include "lib/device/host_mapping.h"
#include "lib/digest/hasher.h"
#include "lib/format/chunk_table.h"
#include "lib/format/constants.h"
#include "lib/format/file_header.h"
#include "lib/format/trailer.h"

namespace sealpoint::internal::copy {
namespace {

// What stands around the chunks of a blob, verified: what is written are these bytes, and not what
// a second reading of them might yield.
class BlobFrame {
 public:
  static Result<BlobFrame> Read(const ReadableFile& file, const metadata::BlobPin& pin,
                                const Limits& limits);

  std::uint64_t chunks_end() const { return trailer_.chunks_end; }
  std::uint32_t record_count() const { return trailer_.record_count; }
  Result<format::ChunkRecord> record(std::uint32_t number) const {
    return format::DecodeRecord(Section(
        sections_.records + std::uint64_t{number} * format::kRecordSize, format::kRecordSize));
  }
  // Puts the bytes of the frame into `piece`, the bytes of the file from `begin` on.
  void Overlay(std::uint64_t begin, MutableByteSpan piece) const;

 private:
  ByteSpan Section(std::uint64_t offset, std::uint64_t size) const {
    return ByteSpan(tail_).subspan(offset - trailer_.chunks_end, size);
  }
  Status CheckHeader() const;
  Status CheckTable(const metadata::BlobPin& pin) const;
  Status CheckPadding() const;

  Bytes header_;
  format::Trailer trailer_;
  format::BlobSections sections_;
  Bytes tail_;  // from the end of the chunk area to that of the file
};

Result<BlobFrame> BlobFrame::Read(const ReadableFile& file, const metadata::BlobPin& pin,
                                  const Limits& limits) {
  BlobFrame frame;
  Bytes trailer(format::kTrailerSize);
  const std::uint64_t trailer_at = pin.file_size - format::kTrailerSize;
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(trailer_at, trailer));
  SEALPOINT_ASSIGN_OR_RETURN(frame.trailer_, format::DecodeTrailer(trailer));
  if (format::StoredTrailerDigest(trailer) != pin.trailer_digest) {
    return StoredDigestError("R-BLB-03", "trailer", format::StoredTrailerDigest(trailer),
                             pin.trailer_digest)
        .AtOffset(trailer_at);
  }
  // The pinned digest vouches for all that the trailer says, but not for the size of a manifest.
  const std::uint64_t manifest_size = frame.trailer_.manifest_size;
  if (manifest_size > limits.manifest_size_max_bytes) {
    return RuleError(Code::kLimitExceeded, "R-IDX-01", "manifest has ", manifest_size,
                     " bytes, the limit is ", limits.manifest_size_max_bytes);
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      frame.sections_,
      format::ComputeSections(frame.chunks_end(), frame.record_count(), manifest_size));
  frame.header_.resize(format::kHeaderSize);
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(0, frame.header_));
  SEALPOINT_RETURN_IF_ERROR(frame.CheckHeader());
  SEALPOINT_RETURN_IF_ERROR(
      container::ResizeBytes(frame.tail_, pin.file_size - frame.chunks_end()));
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(frame.chunks_end(), frame.tail_));
  std::copy(trailer.begin(), trailer.end(),
            frame.tail_.end() - std::ptrdiff_t{format::kTrailerSize});
  SEALPOINT_RETURN_IF_ERROR(frame.CheckTable(pin));
  SEALPOINT_RETURN_IF_ERROR(frame.CheckPadding());
  return frame;
}

Status BlobFrame::CheckHeader() const {
  SEALPOINT_ASSIGN_OR_RETURN(const format::FileHeader header,
                             format::DecodeHeader(header_, format::FileKind::kBlob));
  const Digest found = format::StoredHeaderDigest(header_);
  if (found == trailer_.header_digest) return format::CheckExtension(trailer_, header.features);
  return StoredDigestError("R-BLB-03", "header", found, trailer_.header_digest);
}

Status BlobFrame::CheckTable(const metadata::BlobPin& pin) const {
  const ByteSpan list = Section(sections_.table, sections_.group_list_size);
  if (const Digest computed = ComputeDigest(list); computed != pin.group_list_digest) {
    return DigestError("R-BLB-05", "group list", computed, pin.group_list_digest)
        .AtOffset(sections_.table);
  }
  for (std::uint32_t group = 0; group < format::GroupCount(record_count()); ++group) {
    const std::uint64_t at = sections_.records + group * format::kRecordGroupSize;
    const std::uint64_t size =
        std::min(format::kRecordGroupSize, sections_.records + sections_.records_size - at);
    SEALPOINT_RETURN_IF_ERROR(format::CheckGroup(list, group, Section(at, size)).AtOffset(at));
  }
  const Digest computed = ComputeDigest(Section(sections_.manifest, trailer_.manifest_size));
  if (computed == trailer_.manifest_digest) return {};
  return DigestError("R-BLB-06", "manifest", computed, trailer_.manifest_digest)
      .AtOffset(sections_.manifest);
}

Status CheckZero(ByteSpan bytes, std::uint64_t offset) {
  const auto bad =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  if (bad == bytes.end()) return {};
  return RuleError(Code::kCorrupt, "R-BLB-08", "padding is not zero")
      .AtOffset(offset + static_cast<std::uint64_t>(bad - bytes.begin()));
}

Status BlobFrame::CheckPadding() const {
  const std::uint64_t list_end = sections_.table + sections_.group_list_size;
  const std::uint64_t records_end = sections_.records + sections_.records_size;
  for (const auto& [begin, end] : {std::pair(chunks_end(), sections_.table),
                                   {list_end, sections_.records},
                                   {records_end, sections_.manifest},
                                   {sections_.manifest_end, sections_.trailer}}) {
    SEALPOINT_RETURN_IF_ERROR(CheckZero(Section(begin, end - begin), begin));
  }
  return {};
}

void BlobFrame::Overlay(std::uint64_t begin, MutableByteSpan piece) const {
  const auto put = [&](ByteSpan bytes, std::uint64_t at) {
    const std::uint64_t from = std::max(at, begin);
    const std::uint64_t to = std::min(at + bytes.size(), begin + piece.size());
    if (from >= to) return;
    const ByteSpan part = bytes.subspan(from - at, to - from);
    std::copy(part.begin(), part.end(), piece.begin() + static_cast<std::ptrdiff_t>(from - begin));
  };
  put(header_, 0);
  put(tail_, trailer_.chunks_end);
}

// Takes the bytes of a chunk area in their order, in pieces of any size, and checks the digest of
// each chunk as it is stored, and that all between them is zero. Nothing is decoded: the table pins
// the stored bytes, too.
class ChunkChecker {
 public:
  explicit ChunkChecker(const BlobFrame& frame) : frame_(frame), position_(format::kHeaderSize) {}

  // The bytes of the file from `begin` on; those outside of the chunk area are passed by.
  Status Take(std::uint64_t begin, ByteSpan piece);
  // After the last piece.
  Status Finish() const;

 private:
  Status TakePart(ByteSpan part);
  Status NextRecord();
  Status CheckDigest();

  const BlobFrame& frame_;
  std::uint64_t position_;
  std::uint32_t next_record_ = 0;
  std::optional<format::ChunkRecord> chunk_;  // that comes, or whose bytes come
  digest::Hasher hasher_;
};

Status ChunkChecker::NextRecord() {
  SEALPOINT_ASSIGN_OR_RETURN(chunk_, frame_.record(next_record_));
  ++next_record_;
  const std::uint64_t end = chunk_->offset + chunk_->stored_size;
  if (chunk_->offset >= position_ && end >= chunk_->offset && end <= frame_.chunks_end()) return {};
  return RuleError(Code::kCorrupt, "R-REC-04", "chunk of ", chunk_->stored_size,
                   " bytes is outside the chunk area, or overlaps the preceding chunk")
      .AtOffset(chunk_->offset);
}

Status ChunkChecker::CheckDigest() {
  const bool is_coded = chunk_->codec != Codec::kNone;
  const Digest computed = hasher_.Finish();
  const Digest& recorded = is_coded ? chunk_->stored_digest : chunk_->raw_digest;
  if (computed == recorded) return {};
  return DigestError(is_coded ? "R-CHK-01" : "R-CHK-02",
                     StrCat("chunk ", chunk_->chunk, " (", chunk_->stored_size, " bytes)"),
                     computed, recorded)
      .AtOffset(chunk_->offset);
}

Status ChunkChecker::Take(std::uint64_t begin, ByteSpan piece) {
  const std::uint64_t end = std::min(begin + piece.size(), frame_.chunks_end());
  while (position_ < end) {
    if (!chunk_ && next_record_ < frame_.record_count()) SEALPOINT_RETURN_IF_ERROR(NextRecord());
    const std::uint64_t chunk_begin = chunk_ ? chunk_->offset : frame_.chunks_end();
    const std::uint64_t stop =
        position_ < chunk_begin ? chunk_begin : chunk_begin + chunk_->stored_size;
    SEALPOINT_RETURN_IF_ERROR(
        TakePart(piece.subspan(position_ - begin, std::min(end, stop) - position_)));
  }
  return {};
}

// `part` belongs to one padding or one chunk.
Status ChunkChecker::TakePart(ByteSpan part) {
  const bool is_padding = !chunk_ || position_ < chunk_->offset;
  if (is_padding) {
    SEALPOINT_RETURN_IF_ERROR(CheckZero(part, position_));
  } else {
    hasher_.Update(part);
  }
  position_ += part.size();
  if (is_padding || position_ < chunk_->offset + chunk_->stored_size) return {};
  SEALPOINT_RETURN_IF_ERROR(CheckDigest());
  chunk_.reset();
  return {};
}

Status ChunkChecker::Finish() const {
  if (next_record_ == frame_.record_count()) return {};
  return RuleError(Code::kCorrupt, "R-REC-04", "chunk area ends after ", next_record_, " of ",
                   frame_.record_count(), " chunks");
}

// `to` null: they are verified only.
Status CopyBytes(const Directory& from, const std::string& name, WritableFile* to,
                 const metadata::BlobPin& pin, const BlobCopyOptions& options) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, from.OpenForRead(name, IoMode::kBuffered));
  SEALPOINT_RETURN_IF_ERROR(container::CheckBlobSize(from.path(), pin, file->size_bytes()));
  SEALPOINT_ASSIGN_OR_RETURN(const BlobFrame frame, BlobFrame::Read(*file, pin, options.limits));
  if (to != nullptr) SEALPOINT_RETURN_IF_ERROR(to->Preallocate(pin.file_size));
  SEALPOINT_ASSIGN_OR_RETURN(const auto payload, from.OpenForRead(name, IoMode::kDirect));
  const std::uint64_t piece_size = std::min(options.piece_size_bytes, pin.file_size);
  // Direct I/O from and to ordinary pages is up to three times slower than with huge ones.
  SEALPOINT_ASSIGN_OR_RETURN(const MutableByteSpan memory,
                             device::MapHostMemory(AlignUp(piece_size, device::kPageBytes)));
  const auto unmap = [memory](std::byte*) { device::UnmapHostMemory(memory); };
  const std::unique_ptr<std::byte, decltype(unmap)> owner(memory.data(), unmap);
  ChunkChecker checker(frame);
  for (std::uint64_t at = 0; at < pin.file_size; at += piece_size) {
    const MutableByteSpan piece = memory.first(std::min(piece_size, pin.file_size - at));
    SEALPOINT_RETURN_IF_ERROR(payload->ReadAt(at, piece));
    payload->WillRead(at + piece.size(), std::min(piece_size, pin.file_size - at - piece.size()));
    // Verified here, between the one reading and the one writing.
    SEALPOINT_RETURN_IF_ERROR(checker.Take(at, piece));
    frame.Overlay(at, piece);
    if (to != nullptr) SEALPOINT_RETURN_IF_ERROR(to->WriteAt(at, piece));
    SEALPOINT_RETURN_IF_ERROR(options.meter.Add(piece.size()));
  }
  return checker.Finish();
}

// Unless it has a path: that of the file in the other directory.
Status InFile(Status error, const Directory& directory, const std::string& name) {
  return std::move(error).AtPath(JoinPath(directory.path(), name));
}

}  // namespace

std::uint64_t PieceSize(std::uint64_t memory_budget_bytes, int threads) {
  const std::uint64_t share = memory_budget_bytes / static_cast<std::uint64_t>(threads);
  return share - share % kDirectIoAlignmentBytes;
}

Result<bool> HasBlob(const Directory& directory, const metadata::BlobPin& pin,
                     const Result<EntryInfo>& info) {
  const std::string name = format::BlobName(pin.id);
  if (!info.ok() && info.error().code() == Code::kNotFound) return false;
  SEALPOINT_RETURN_IF_ERROR(info.status());
  Digest found{};
  if (info->kind == EntryKind::kFile && info->size_bytes == pin.file_size) {
    SEALPOINT_ASSIGN_OR_RETURN(const auto file, directory.OpenForRead(name, IoMode::kBuffered));
    Bytes trailer(format::kTrailerSize);
    SEALPOINT_RETURN_IF_ERROR(file->ReadAt(pin.file_size - format::kTrailerSize, trailer));
    found = format::StoredTrailerDigest(trailer);
    if (found == pin.trailer_digest) return true;
  }
  return RuleError(Code::kCorrupt, "R-STG-03", "another file has the blob's name: it has ",
                   info->size_bytes, " bytes and trailer digest ", found.ToHex(), ", expected ",
                   pin.file_size, " bytes and ", pin.trailer_digest.ToHex())
      .AtPath(JoinPath(directory.path(), name));
}

Status VerifyBlob(const Directory& directory, const metadata::BlobPin& pin,
                  const BlobCopyOptions& options) {
  const std::string name = format::BlobName(pin.id);
  Status status = CopyBytes(directory, name, nullptr, pin, options);
  return status.ok() ? status : InFile(std::move(status), directory, name);
}

Result<bool> CopyBlob(const Directory& from, Directory& to, const metadata::BlobPin& pin,
                      const BlobCopyOptions& options) {
  const std::string name = format::BlobName(pin.id);
  SEALPOINT_ASSIGN_OR_RETURN(
      const auto copy,
      WholeFile::Create(to, options.publish, name, format::kBlobSuffix, IoMode::kDirect));
  Status status = CopyBytes(from, name, &copy->file(), pin, options);
  if (!status.ok()) return InFile(std::move(status), from, name);
  status = copy->Finish();
  if (status.ok()) return true;
  // Another promoter's copy, or this one, whose publication was reported as failed.
  const auto has = HasBlob(to, pin, to.Stat(name));
  if (has.ok() && *has) return false;
  return has.ok() ? status : has.error();
}

}  // namespace sealpoint::internal::copy
