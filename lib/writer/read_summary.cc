// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/format/trailer.h"
#include "lib/writer/blob_summary_parts.h"
#include "sealpoint/commit.h"

namespace sealpoint {
namespace {

Result<BlobSummary> ReadSummaryFrom(const ReadableFile& file, const BlobId& blob,
                                    const Limits& limits) {
  const std::uint64_t size = file.size_bytes();
  if (size < internal::format::kHeaderSize + internal::format::kTrailerSize) {
    return internal::RuleError(Code::kIncomplete, "R-BLB-01", "blob has ", size,
                               " bytes, expected at least ",
                               internal::format::kHeaderSize + internal::format::kTrailerSize);
  }
  Bytes header(internal::format::kHeaderSize);
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(0, header));
  Bytes trailer_bytes(internal::format::kTrailerSize);
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(size - internal::format::kTrailerSize, trailer_bytes));
  SEALPOINT_ASSIGN_OR_RETURN(const internal::format::Trailer trailer,
                             internal::format::DecodeTrailer(trailer_bytes));
  if (trailer.blob != blob || trailer.file_size != size) {
    return internal::RuleError(Code::kCorrupt, "R-BLB-03", "trailer is of blob ",
                               trailer.blob.ToHex(), " with ", trailer.file_size,
                               " bytes, expected blob ", blob.ToHex(), " with ", size, " bytes");
  }
  if (trailer.manifest_size > limits.manifest_size_max_bytes) {
    return internal::RuleError(Code::kLimitExceeded, "R-IDX-01", "manifest has ",
                               trailer.manifest_size, " bytes, the limit is ",
                               limits.manifest_size_max_bytes);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const internal::format::BlobSections sections,
                             internal::format::ComputeSections(
                                 trailer.chunks_end, trailer.record_count, trailer.manifest_size));
  Bytes manifest(trailer.manifest_size);
  SEALPOINT_RETURN_IF_ERROR(file.ReadAt(sections.manifest, manifest));
  return BlobSummary::Deserialize(
      internal::writer::JoinSummaryParts(header, trailer_bytes, manifest), limits);
}

}  // namespace

Result<BlobSummary> ReadSummary(const Storage& storage, const std::string& directory,
                                const BlobId& blob, const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto opened, storage.OpenDirectory(directory));
  const std::string name = internal::format::BlobName(blob);
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, opened->OpenForRead(name, IoMode::kBuffered));
  auto summary = ReadSummaryFrom(*file, blob, limits);
  if (!summary.ok()) return std::move(summary).error().AtPath(JoinPath(directory, name));
  return summary;
}

Result<std::vector<BlobId>> ListBlobs(const Storage& storage, const std::string& directory) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto opened, storage.OpenDirectory(directory));
  SEALPOINT_ASSIGN_OR_RETURN(const auto entries, opened->List());
  std::vector<BlobId> blobs;
  for (const EntryInfo& entry : entries) {
    const internal::format::ParsedName parsed = internal::format::ParseName(entry.name);
    if (parsed.kind == internal::format::NameKind::kBlob) blobs.emplace_back(parsed.id);
  }
  std::sort(blobs.begin(), blobs.end());
  return blobs;
}

}  // namespace sealpoint
