// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/pinned.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/digest/hasher.h"

namespace sealpoint::internal {
namespace {

// Offsets of fields, spec/container.md sections 2 and 3.
constexpr std::uint64_t kCompatAt = 24;
constexpr std::uint64_t kIdAt = 56;
constexpr std::uint64_t kStepAt = 88;
constexpr std::uint64_t kMarkerBlobCountAt = 184;
constexpr std::uint64_t kMarkerTotalBytesAt = 192;

Status NoMarker(std::string_view message) {
  return RuleError(Code::kUncommitted, "R-MRK-01", message);
}

// R-MRK-01. At most one byte more than a marker has.
Result<Bytes> ReadMarkerFile(const Subject& subject, Worker& worker) {
  SEALPOINT_ASSIGN_OR_RETURN(const EntryInfo entry, subject.directory.Stat(kMarkerName));
  if (entry.kind == EntryKind::kDirectory || entry.kind == EntryKind::kOther) {
    return NoMarker("COMMIT is not a regular file");
  }
  SEALPOINT_ASSIGN_OR_RETURN(const auto file,
                             subject.directory.OpenForRead(kMarkerName, subject.io_mode()));
  const std::uint64_t size = std::min<std::uint64_t>(file->size_bytes(), kMarkerSize + 1);
  return ReadBytes(*file, *worker.pool, 0, size);
}

Result<Marker> ReadMarker(const Subject& subject, Worker& worker, bool has_other_files) {
  Result<Bytes> bytes = ReadMarkerFile(subject, worker);
  if (bytes.error().code() == Code::kNotFound) return NoMarker("no commit marker");
  if (!bytes) return std::move(bytes).error();
  Result<Marker> marker = DecodeMarker(*bytes);
  if (marker.error().code() == Code::kNotACheckpoint && has_other_files) {
    return InFile(Status(Code::kCorrupt, marker.error().message())
                      .AtRule(marker.error().place().rule)
                      .AtOffset(marker.error().place().offset.value_or(0)),
                  0, subject.PathOf(kMarkerName));
  }
  if (!marker) return std::move(marker).error();
  subject.meter.Add(bytes->size());
  if (marker->kind == MarkerKind::kVoid) {
    return NoMarker("void marker: this directory will never hold a checkpoint");
  }
  return marker;
}

// R-MRK-05 and, before that many bytes are read, R-IDX-01.
Status CheckIndexSize(const Subject& subject, const Marker& marker, std::uint64_t size) {
  if (size < marker.index_size) {
    return RuleError(Code::kIncomplete, "R-MRK-05", "the index has ", size, " of ",
                     marker.index_size, " bytes")
        .AtOffset(size);
  }
  if (size > marker.index_size) {
    return RuleError(Code::kCorrupt, "R-MRK-05", "the index has ", size, " bytes instead of ",
                     marker.index_size)
        .AtOffset(marker.index_size);
  }
  const std::uint64_t size_max = subject.options.limits.index_size_max_bytes;
  if (size <= size_max) return {};
  return RuleError(Code::kLimitExceeded, "R-IDX-01", "the index has ", size,
                   " bytes, the limit is ", size_max);
}

Result<Bytes> ReadIndexFile(const Subject& subject, Worker& worker, const Marker& marker) {
  Result<std::unique_ptr<ReadableFile>> file =
      subject.directory.OpenForRead(IndexName(marker.attempt), subject.io_mode());
  if (file.error().code() == Code::kNotFound) {
    return RuleError(Code::kIncomplete, "R-MRK-05", "the index is missing");
  }
  if (!file) return std::move(file).error();
  SEALPOINT_RETURN_IF_ERROR(CheckIndexSize(subject, marker, (*file)->size_bytes()));
  SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, ReadBytes(**file, *worker.pool, 0, marker.index_size));
  if (ComputeDigest(bytes) != marker.index_digest) {
    return RuleError(Code::kCorrupt, "R-MRK-06", "digest of the index differs");
  }
  subject.meter.Add(bytes.size());
  return bytes;
}

// R-HDR-08 and R-HDR-09.
Status CheckIndexHeader(const FileHeader& header, const Marker& marker) {
  if (header.id != marker.attempt || header.attempt != marker.attempt) {
    return RuleError(Code::kCorrupt, "R-HDR-08", "the index is that of attempt ", header.id.ToHex())
        .AtOffset(kIdAt);
  }
  if (header.step != marker.step) {
    return RuleError(Code::kCorrupt, "R-HDR-08", "step of the index differs from the marker's")
        .AtOffset(kStepAt);
  }
  if (header.features != marker.features) {
    return RuleError(Code::kCorrupt, "R-HDR-09", "feature masks of index and marker differ")
        .AtOffset(kCompatAt);
  }
  return {};
}

Result<Contents> ReadIndex(const Subject& subject, Worker& worker, const Marker& marker) {
  SEALPOINT_ASSIGN_OR_RETURN(Bytes read, ReadIndexFile(subject, worker, marker));
  const auto bytes = std::make_shared<const Bytes>(std::move(read));
  const ByteSpan all(*bytes);
  SEALPOINT_ASSIGN_OR_RETURN(
      const FileHeader header,
      DecodeHeader(all.first(std::min(all.size(), kHeaderSizeMax)), FileKind::kIndex));
  SEALPOINT_RETURN_IF_ERROR(CheckIndexHeader(header, marker));
  Result<Contents> contents = Contents::Decode(ContentsKind::kIndex, bytes,
                                               all.subspan(kHeaderSize), subject.options.limits);
  if (contents) return contents;
  return InFile(contents.error(), kHeaderSize, subject.PathOf(IndexName(marker.attempt)));
}

// R-MRK-07. Sums fit (R-IDX-11).
void CheckTotals(const Subject& subject, const Marker& marker, const Contents& index) {
  std::uint64_t total_bytes = 0;
  for (std::size_t b = 0; b < index.blob_count(); ++b) total_bytes += index.blob(b).file_size;
  const auto report = [&](std::uint64_t offset, std::string_view what, std::uint64_t in_marker,
                          std::uint64_t in_index) {
    if (in_marker == in_index) return;
    subject.findings.Add(kMarkerRank, RuleError(Code::kCorrupt, "R-MRK-07", "the marker pins ",
                                                in_marker, " ", what, ", the index ", in_index)
                                          .AtOffset(offset)
                                          .AtPath(subject.PathOf(kMarkerName)));
  };
  report(kMarkerBlobCountAt, "blobs", marker.blob_count, index.blob_count());
  report(kMarkerTotalBytesAt, "bytes of blobs", marker.total_bytes, total_bytes);
}

}  // namespace

std::optional<Marker> CheckMarker(const Subject& subject, Worker& worker, bool has_other_files) {
  Result<Marker> marker = ReadMarker(subject, worker, has_other_files);
  if (marker) return *marker;
  subject.findings.Add(kMarkerRank, std::move(marker).error().AtPath(subject.PathOf(kMarkerName)));
  return std::nullopt;
}

std::optional<Contents> CheckIndex(const Subject& subject, Worker& worker, const Marker& marker) {
  Result<Contents> index = ReadIndex(subject, worker, marker);
  if (!index) {
    subject.findings.Add(
        kIndexRank, std::move(index).error().AtPath(subject.PathOf(IndexName(marker.attempt))));
    return std::nullopt;
  }
  CheckTotals(subject, marker, *index);
  return std::move(*index);
}

}  // namespace sealpoint::internal
