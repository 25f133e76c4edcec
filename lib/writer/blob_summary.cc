// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/writer/blob_summary_parts.h"
#include "sealpoint/blob_writer.h"

namespace sealpoint {
namespace internal::writer {
namespace {

// Header and trailer, which the manifest follows.
constexpr std::size_t kFixedSize = format::kHeaderSize + format::kTrailerSize;

void AppendTo(Bytes& out, ByteSpan part) { out.insert(out.end(), part.begin(), part.end()); }

Status CheckPartsBelongTogether(const format::FileHeader& header, const format::Trailer& trailer,
                                ByteSpan header_bytes, ByteSpan manifest) {
  if (trailer.blob != header.id) {
    return RuleError(Code::kCorrupt, "R-BLB-03", "blob id is ", trailer.blob.ToHex(),
                     " in the trailer, ", header.id.ToHex(), " in the header");
  }
  if (const Digest stored = format::StoredHeaderDigest(header_bytes);
      trailer.header_digest != stored) {
    return RuleError(Code::kCorrupt, "R-BLB-03", "header digest is ", stored.ToHex(),
                     ", the trailer pins ", trailer.header_digest.ToHex());
  }
  if (trailer.manifest_size != manifest.size()) {
    return RuleError(Code::kCorrupt, "R-BLB-06", "manifest has ", manifest.size(),
                     " bytes, the trailer pins ", trailer.manifest_size);
  }
  if (const Digest computed = ComputeDigest(manifest); trailer.manifest_digest != computed) {
    return DigestError("R-BLB-06", "manifest", computed, trailer.manifest_digest);
  }
  return {};
}

}  // namespace

Bytes JoinSummaryParts(ByteSpan header, ByteSpan trailer, ByteSpan manifest) {
  Bytes out;
  out.reserve(header.size() + trailer.size() + manifest.size());
  AppendTo(out, header);
  AppendTo(out, trailer);
  AppendTo(out, manifest);
  return out;
}

Result<DecodedSummary> DecodeSummary(std::shared_ptr<const Bytes> bytes, const Limits& limits) {
  if (bytes->size() < kFixedSize) {
    return MakeError(Code::kCorrupt, "blob summary has ", bytes->size(),
                     " bytes, expected at least ", kFixedSize);
  }
  const ByteSpan header_bytes = ByteSpan(*bytes).first(format::kHeaderSize);
  const ByteSpan trailer_bytes =
      ByteSpan(*bytes).subspan(format::kHeaderSize, format::kTrailerSize);
  const ByteSpan manifest = ByteSpan(*bytes).subspan(kFixedSize);
  SEALPOINT_ASSIGN_OR_RETURN(const format::FileHeader header,
                             format::DecodeHeader(header_bytes, format::FileKind::kBlob));
  SEALPOINT_ASSIGN_OR_RETURN(const format::Trailer trailer, format::DecodeTrailer(trailer_bytes));
  SEALPOINT_RETURN_IF_ERROR(format::CheckExtension(trailer, header.features));
  SEALPOINT_RETURN_IF_ERROR(CheckPartsBelongTogether(header, trailer, header_bytes, manifest));
  SEALPOINT_ASSIGN_OR_RETURN(
      const format::BlobSections sections,
      format::ComputeSections(trailer.chunks_end, trailer.record_count, trailer.manifest_size));
  SEALPOINT_ASSIGN_OR_RETURN(metadata::Metadata metadata,
                             metadata::Metadata::DecodeManifest(
                                 bytes, manifest, {trailer.record_count, trailer.shard_count},
                                 limits, metadata::AnnouncedBy(header.features)));
  const metadata::BlobPin pin{.id = trailer.blob,
                              .file_size = trailer.file_size,
                              .table_offset = sections.table,
                              .record_count = trailer.record_count,
                              .shard_count = trailer.shard_count,
                              .group_list_digest = trailer.group_list_digest,
                              .trailer_digest = format::StoredTrailerDigest(trailer_bytes)};
  return DecodedSummary{std::move(bytes), header, trailer, pin, std::move(metadata)};
}

}  // namespace internal::writer

BlobSummary InternalAccess::MakeSummary(internal::writer::DecodedSummary decoded) {
  BlobSummary summary;
  summary.decoded_ =
      std::make_shared<const BlobSummary::Decoded>(BlobSummary::Decoded{std::move(decoded)});
  return summary;
}

const internal::writer::DecodedSummary* InternalAccess::DecodedOf(const BlobSummary& summary) {
  return summary.decoded_.get();
}

BlobId BlobSummary::blob() const { return decoded_ ? decoded_->pin.id : BlobId{}; }

std::uint64_t BlobSummary::file_size_bytes() const {
  return decoded_ ? decoded_->pin.file_size : 0;
}

std::uint64_t BlobSummary::raw_bytes() const { return decoded_ ? decoded_->trailer.raw_bytes : 0; }

ByteSpan BlobSummary::manifest() const& {
  return decoded_ ? ByteSpan(*decoded_->bytes).subspan(internal::writer::kFixedSize) : ByteSpan();
}

Bytes BlobSummary::Serialize() const { return decoded_ ? *decoded_->bytes : Bytes(); }

bool operator==(const BlobSummary& a, const BlobSummary& b) {
  if (!a.decoded_ || !b.decoded_) return a.decoded_ == b.decoded_;
  return *a.decoded_->bytes == *b.decoded_->bytes;
}

Result<BlobSummary> BlobSummary::Deserialize(ByteSpan bytes, const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(
      internal::writer::DecodedSummary decoded,
      internal::writer::DecodeSummary(std::make_shared<const Bytes>(bytes.begin(), bytes.end()),
                                      limits));
  return InternalAccess::MakeSummary(std::move(decoded));
}

Bytes SerializeSummaries(const std::vector<BlobSummary>& summaries) {
  Bytes out;
  for (const BlobSummary& summary : summaries) {
    const Bytes serialized = summary.Serialize();
    const std::size_t at = out.size();
    out.resize(at + sizeof(std::uint64_t));
    internal::StoreLe<std::uint64_t>(out, at, serialized.size());
    out.insert(out.end(), serialized.begin(), serialized.end());
  }
  return out;
}

Result<std::vector<BlobSummary>> DeserializeSummaries(ByteSpan bytes, const Limits& limits) {
  std::vector<BlobSummary> summaries;
  std::size_t at = 0;
  while (at < bytes.size()) {
    constexpr std::size_t kPrefixSize = sizeof(std::uint64_t);
    const bool has_prefix = internal::RangeFits(at, kPrefixSize, bytes.size());
    const std::uint64_t size = has_prefix ? internal::LoadLe<std::uint64_t>(bytes, at) : 0;
    if (!internal::RangeFits(at + kPrefixSize, size, bytes.size())) {
      return internal::MakeError(Code::kCorrupt, "list of blob summaries ends early: it has ",
                                 bytes.size(), " bytes")
          .AtOffset(at);
    }
    auto summary = BlobSummary::Deserialize(bytes.subspan(at + kPrefixSize, size), limits);
    if (!summary.ok()) {
      return std::move(summary).error().Prefixed(internal::StrCat(
          "blob summary ", summaries.size(), " at byte ", at, " of a list of ", bytes.size()));
    }
    summaries.push_back(*std::move(summary));
    at += kPrefixSize + size;
  }
  return summaries;
}

}  // namespace sealpoint
