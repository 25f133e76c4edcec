// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/blob_layout.h"

#include <limits>
#include <string>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/writer/blob_summary_parts.h"

namespace sealpoint::internal::writer {
namespace {

// Upper bound of what a manifest entry takes beside its texts: table, vectors, padding.
constexpr std::uint64_t kManifestEntrySize = 256;
// Upper bound of the numbers of one dimension: shape, offset and extent.
constexpr std::uint64_t kManifestDimensionSize = 64;

// A text with its offset, length, terminator and padding.
std::uint64_t RoomForText(std::string_view text) { return text.size() + 16; }

std::uint64_t PaddingTo(std::uint64_t alignment, std::uint64_t offset) {
  return AlignUp(offset, alignment) - offset;
}

}  // namespace

BlobLayout::BlobLayout(const format::FileHeader& header, const metadata::TensorTable& tensors)
    : header_(header),
      header_bytes_(format::kHeaderSize),
      tensors_(tensors),
      manifest_(tensors, (header.features.compat & format::kFingerprintFeature) != 0) {
  format::EncodeHeader(header_, header_bytes_);
}

void BlobLayout::SetAttempt(const AttemptId& attempt) {
  header_.attempt = attempt;
  format::EncodeHeader(header_, header_bytes_);
}

std::uint64_t BlobLayout::projected_size() const {
  return offset_ + 2 * records_.size() + manifest_estimate_ + format::kTrailerSize +
         format::kFileAlignment;
}

std::uint64_t BlobLayout::RoomToDeclare(const metadata::TensorAttributes& tensor) {
  std::uint64_t room = format::kLargeShardAlignment + 2 * kManifestEntrySize +
                       2 * kManifestDimensionSize * tensor.shape.size() + RoomForText(tensor.name) +
                       RoomForText(tensor.attributes);
  for (const std::string& text : tensor.placement) room += RoomForText(text);
  return room;
}

std::uint64_t BlobLayout::RoomToDeclare(const ObjectSpec& object) {
  return format::kLargeShardAlignment + kManifestEntrySize + RoomForText(object.name) +
         RoomForText(object.media_type);
}

std::uint64_t BlobLayout::RoomForBytes(const transfer::ShardEncoding& encoding) {
  return encoding.raw_size + 2 * format::kRecordSize * encoding.chunk_count();
}

Result<BlobLayout::ShardPlace> BlobLayout::AddShard(const transfer::ShardEncoding& encoding) {
  const std::uint64_t first_record = records_.size() / format::kRecordSize;
  const std::uint64_t chunk_count = encoding.chunk_count();
  if (first_record + chunk_count > std::numeric_limits<std::uint32_t>::max()) {
    return MakeError(Code::kLimitExceeded, "a blob cannot have more than 2^32 - 1 chunks");
  }
  const ShardPlace place{.padding = PaddingTo(format::ShardAlignment(encoding.raw_size), offset_),
                         .first_record = static_cast<std::uint32_t>(first_record)};
  offset_ += place.padding;
  encoding_ = encoding;
  chunk_ = 0;
  ++shard_count_;
  raw_bytes_ += encoding.raw_size;
  return place;
}

std::size_t BlobLayout::AddChunk(const transfer::StoredChunk& chunk) {
  SEALPOINT_CHECK(chunk_ < encoding_.chunk_count());
  const std::size_t end = records_.size();
  records_.resize(end + format::kRecordSize);
  format::EncodeRecord({.offset = offset_,
                        .stored_size = static_cast<std::uint32_t>(chunk.stored_size),
                        .raw_size = static_cast<std::uint32_t>(encoding_.raw_size_of(chunk_)),
                        .shard = shard_count_ - 1,
                        .chunk = static_cast<std::uint32_t>(chunk_),
                        .codec = chunk.codec,
                        .raw_digest = chunk.raw_digest,
                        .stored_digest = chunk.stored_digest},
                       MutableByteSpan(records_).last(format::kRecordSize));
  offset_ += chunk.stored_size;
  ++chunk_;
  return end / format::kRecordSize;
}

void BlobLayout::SetDigest(std::size_t record, const Digest& raw) {
  format::SetRawDigest(
      MutableByteSpan(records_).subspan(record * format::kRecordSize, format::kRecordSize), raw);
}

void BlobLayout::DeclareTensor(std::uint32_t tensor) {
  if (manifest_.AddTensor(tensor)) manifest_estimate_ += RoomToDeclare(tensors_[tensor]);
}

void BlobLayout::DeclareShard(std::uint32_t tensor, const Region& region,
                              std::uint32_t first_record) {
  DeclareTensor(tensor);
  manifest_.AddShard(tensor, region, first_record);
  manifest_estimate_ += kManifestEntrySize + kManifestDimensionSize * region.box.extent.size();
}

void BlobLayout::DeclareObject(const ObjectSpec& object, const transfer::ShardEncoding& encoding,
                               std::uint32_t first_record) {
  manifest_estimate_ += RoomToDeclare(object);
  manifest_.AddObject({.name = object.name,
                       .media_type = object.media_type,
                       .size = encoding.raw_size,
                       .chunk_size = encoding.chunk_size,
                       .first_record = first_record});
}

Status BlobLayout::AppendPiece(std::uint64_t alignment, ByteSpan bytes, const Append& append) {
  const std::uint64_t zeros = PaddingTo(alignment, offset_);
  offset_ += zeros + bytes.size();
  return append(zeros, bytes);
}

Status BlobLayout::End(const Append& append) {
  format::Trailer trailer{
      .blob = id(),
      .chunks_end = offset_,
      .record_count = static_cast<std::uint32_t>(records_.size() / format::kRecordSize),
      .shard_count = shard_count_,
      .raw_bytes = raw_bytes_,
      .header_digest = format::StoredHeaderDigest(header_bytes_)};
  {
    const Bytes group_list = format::EncodeGroupList(records_);
    trailer.group_list_digest = ComputeDigest(group_list);
    SEALPOINT_RETURN_IF_ERROR(AppendPiece(format::kSectionAlignment, group_list, append));
  }
  SEALPOINT_RETURN_IF_ERROR(AppendPiece(format::kSectionAlignment, records_, append));
  records_ = Bytes();
  encoded_manifest_ = manifest_.Encode();
  const ByteSpan manifest = encoded_manifest_.bytes;
  if (manifest.empty()) {
    return MakeError(Code::kLimitExceeded, "the manifest of a blob would pass 2 GiB");
  }
  trailer.manifest_size = manifest.size();
  trailer.manifest_digest = ComputeDigest(manifest);
  SEALPOINT_ASSIGN_OR_RETURN(
      const format::BlobSections sections,
      format::ComputeSections(trailer.chunks_end, trailer.record_count, trailer.manifest_size));
  trailer.file_size = sections.file_size;
  trailer_bytes_ = format::EncodeTrailer(trailer);
  static_assert(format::kRecordSize % format::kSectionAlignment == 0,
                "the manifest follows the records at once");
  SEALPOINT_RETURN_IF_ERROR(AppendPiece(1, manifest, append));
  SEALPOINT_CHECK(offset_ <= sections.trailer);
  return append(sections.trailer - offset_, trailer_bytes_);
}

Bytes BlobLayout::TakeSummary() {
  Bytes summary = JoinSummaryParts(header_bytes_, trailer_bytes_, encoded_manifest_.bytes);
  encoded_manifest_ = {};
  return summary;
}

}  // namespace sealpoint::internal::writer
