// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/pinned.h"

#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// All of a small file as the disk has it. `size`: what it was found to have.
Result<Bytes> ReadDirect(const Subject& subject, Worker& worker, std::string_view name,
                         std::uint64_t size) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, subject.directory.OpenForRead(name, IoMode::kDirect));
  return ReadBytes(*file, *worker.pool, 0, size);
}

Result<Marker> ReadGoodMarker(const Subject& subject, Worker& worker) {
  SEALPOINT_ASSIGN_OR_RETURN(MarkerFile file, ReadMarker(subject.directory));
  if (subject.io_mode() == IoMode::kDirect) {
    // The first reading, through the page cache, found that there is a file and its length.
    SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, ReadDirect(subject, worker, kMarkerName, kMarkerSize));
    SEALPOINT_ASSIGN_OR_RETURN(file, DecodeMarkerFile(subject.directory.path(), std::move(bytes)));
  }
  subject.meter.Add(kMarkerSize);
  SEALPOINT_RETURN_IF_ERROR(CheckCommitted(subject.directory.path(), file.marker));
  return file.marker;
}

Result<IndexFile> ReadGoodIndex(const Subject& subject, Worker& worker, const Marker& marker) {
  const std::string name = IndexName(marker.attempt);
  const Limits& limits = subject.options.limits;
  const Result<EntryInfo> entry = subject.directory.Stat(name);
  const bool can_read_direct = subject.io_mode() == IoMode::kDirect && entry.ok() &&
                               entry->size_bytes == marker.index_size &&
                               marker.index_size <= limits.index_size_max_bytes;
  // The other way says what is wrong with a file that does not have the pinned length.
  if (!can_read_direct) return ReadIndex(subject.directory, marker, limits);
  SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, ReadDirect(subject, worker, name, marker.index_size));
  return DecodeIndexFile(subject.directory.path(), marker, std::move(bytes), limits);
}

}  // namespace

std::optional<Marker> CheckMarker(const Subject& subject, Worker& worker) {
  Result<Marker> marker = ReadGoodMarker(subject, worker);
  if (marker) return *marker;
  subject.findings.Add(kMarkerRank, std::move(marker).error().AtPath(subject.PathOf(kMarkerName)));
  return std::nullopt;
}

std::optional<IndexFile> CheckIndex(const Subject& subject, Worker& worker, const Marker& marker) {
  Result<IndexFile> index = ReadGoodIndex(subject, worker, marker);
  if (!index) {
    subject.findings.Add(
        kIndexRank, std::move(index).error().AtPath(subject.PathOf(IndexName(marker.attempt))));
    return std::nullopt;
  }
  subject.meter.Add(marker.index_size);
  return std::move(*index);
}

}  // namespace sealpoint::internal
