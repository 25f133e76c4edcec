// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/container/rebase.h"
#include "lib/container/resize.h"
#include "lib/format/constants.h"
#include "lib/format/file_header.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::container {
namespace {

// Offsets in the header, spec/container.md section 2.
constexpr std::uint64_t kFeaturesAt = 24;
constexpr std::uint64_t kIdAt = 56;

// R-MRK-05 and R-MRK-08.
Status CheckIndexSize(const format::Marker& marker, std::uint64_t found) {
  if (found == marker.index_size) return {};
  const bool is_short = found < marker.index_size;
  return RuleError(is_short ? Code::kIncomplete : Code::kCorrupt,
                   is_short ? "R-MRK-05" : "R-MRK-08", "the index has ", found, " bytes, ",
                   is_short ? "fewer" : "more", " than the ", marker.index_size, " of the marker")
      .AtOffset(std::min(found, marker.index_size));
}

// The part of R-IDX-01 that must hold before memory is taken.
Status CheckSizeLimit(const format::Marker& marker, const Limits& limits) {
  if (marker.index_size <= limits.index_size_max_bytes) return {};
  return RuleError(Code::kLimitExceeded, "R-IDX-01", "an index of ", marker.index_size,
                   " bytes; the limit is ", limits.index_size_max_bytes);
}

// R-HDR-08 and R-HDR-09.
Status CheckAgainstMarker(const format::FileHeader& header, const format::Marker& marker) {
  if (header.id != marker.attempt || header.attempt != marker.attempt ||
      header.step != marker.step) {
    return RuleError(Code::kCorrupt, "R-HDR-08", "the index belongs to another attempt or step")
        .AtOffset(kIdAt);
  }
  if (header.features != marker.features) {
    return RuleError(Code::kCorrupt, "R-HDR-09", "the feature masks of index and marker differ")
        .AtOffset(kFeaturesAt);
  }
  return {};
}

// R-MRK-07.
Status CheckTotals(const metadata::Metadata& metadata, const format::Marker& marker) {
  std::optional<std::uint64_t> total = 0;
  for (std::size_t i = 0; i < metadata.blob_count() && total; ++i) {
    total = CheckedAdd(*total, metadata.blob(i).file_size);
  }
  if (metadata.blob_count() == marker.blob_count && total == marker.total_bytes) return {};
  return RuleError(Code::kCorrupt, "R-MRK-07", "the marker counts ", marker.blob_count,
                   " blobs of ", marker.total_bytes, " bytes, the index ", metadata.blob_count(),
                   " of ", total.value_or(0));
}

Result<IndexFile> Decode(const format::Marker& marker, Bytes bytes, const Limits& limits) {
  SEALPOINT_RETURN_IF_ERROR(CheckSizeLimit(marker, limits));
  SEALPOINT_RETURN_IF_ERROR(CheckIndexSize(marker, bytes.size()));
  const Digest computed = ComputeDigest(bytes);
  if (computed != marker.index_digest) {
    return DigestError("R-MRK-06", "index", computed, marker.index_digest);
  }
  const auto owner = std::make_shared<const Bytes>(std::move(bytes));
  const ByteSpan all(*owner);
  SEALPOINT_ASSIGN_OR_RETURN(
      const format::FileHeader header,
      format::DecodeHeader(all.first(std::min(all.size(), format::kHeaderSizeMax)),
                           format::FileKind::kIndex));
  SEALPOINT_RETURN_IF_ERROR(CheckAgainstMarker(header, marker));
  // A vector's memory is aligned for any type, and so is what follows the header.
  static_assert(format::kHeaderSize % alignof(std::max_align_t) == 0);
  Result<metadata::Metadata> metadata = metadata::Metadata::Decode(
      metadata::MetadataKind::kIndex, owner, all.subspan(format::kHeaderSize), limits,
      metadata::AnnouncedBy(header.features));
  if (!metadata) return Rebased(metadata.error(), format::kHeaderSize);
  SEALPOINT_RETURN_IF_ERROR(CheckTotals(*metadata, marker));
  return IndexFile{.bytes = owner, .metadata = std::move(*metadata)};
}

Result<Bytes> Read(const Directory& directory, const format::Marker& marker, const Limits& limits) {
  SEALPOINT_RETURN_IF_ERROR(CheckSizeLimit(marker, limits));
  const std::string name = format::IndexName(marker.attempt);
  auto file = directory.OpenForRead(name, IoMode::kBuffered);
  if (!file && (file.error().code() == Code::kNotFound || IsNoFile(directory, name))) {
    return RuleError(Code::kIncomplete, "R-MRK-05", "the index is missing");
  }
  if (!file) return std::move(file).error();
  SEALPOINT_RETURN_IF_ERROR(CheckIndexSize(marker, (*file)->size_bytes()));
  Bytes bytes;
  SEALPOINT_RETURN_IF_ERROR(ResizeBytes(bytes, marker.index_size));
  SEALPOINT_RETURN_IF_ERROR((*file)->ReadAt(0, bytes));
  return bytes;
}

template <typename T>
Result<T> AtIndex(Result<T> result, const std::string& directory_path,
                  const format::Marker& marker) {
  if (result) return result;
  return std::move(result).error().AtPath(
      JoinPath(directory_path, format::IndexName(marker.attempt)));
}

}  // namespace

Result<Bytes> ReadIndexBytes(const Directory& directory, const format::Marker& marker,
                             const Limits& limits) {
  return AtIndex(Read(directory, marker, limits), directory.path(), marker);
}

Result<IndexFile> ReadIndex(const Directory& directory, const format::Marker& marker,
                            const Limits& limits) {
  SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, ReadIndexBytes(directory, marker, limits));
  return DecodeIndexFile(directory.path(), marker, std::move(bytes), limits);
}

Result<IndexFile> DecodeIndexFile(const std::string& directory_path, const format::Marker& marker,
                                  Bytes bytes, const Limits& limits) {
  return AtIndex(Decode(marker, std::move(bytes), limits), directory_path, marker);
}

}  // namespace sealpoint::internal::container
