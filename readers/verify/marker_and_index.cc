// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/marker_and_index.h"

#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// All of a small file as the disk has it. `size`: what it was found to have.
Result<Bytes> ReadDirect(const VerifyContext& context, Worker& worker, std::string_view name,
                         std::uint64_t size) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, context.directory.OpenForRead(name, IoMode::kDirect));
  return ReadBytes(*file, *worker.pool, 0, size);
}

Result<Marker> ReadGoodMarker(const VerifyContext& context, Worker& worker) {
  SEALPOINT_ASSIGN_OR_RETURN(MarkerFile file, ReadMarker(context.directory));
  if (context.io_mode() == IoMode::kDirect) {
    // The first reading, through the page cache, found that there is a file and its length.
    SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, ReadDirect(context, worker, kMarkerName, kMarkerSize));
    SEALPOINT_ASSIGN_OR_RETURN(file, DecodeMarkerFile(context.directory.path(), std::move(bytes)));
  }
  context.meter.Add(kMarkerSize);
  SEALPOINT_RETURN_IF_ERROR(CheckCommitted(context.directory.path(), file.marker));
  return file.marker;
}

Result<IndexFile> ReadGoodIndex(const VerifyContext& context, Worker& worker,
                                const Marker& marker) {
  const std::string name = IndexName(marker.attempt);
  const Limits& limits = context.options.limits;
  const Result<EntryInfo> entry = context.directory.Stat(name);
  const bool can_read_direct = context.io_mode() == IoMode::kDirect && entry.ok() &&
                               entry->size_bytes == marker.index_size &&
                               marker.index_size <= limits.index_size_max_bytes;
  // The other way says what is wrong with a file that does not have the pinned length.
  if (!can_read_direct) return ReadIndex(context.directory, marker, limits);
  SEALPOINT_ASSIGN_OR_RETURN(Bytes bytes, ReadDirect(context, worker, name, marker.index_size));
  return DecodeIndexFile(context.directory.path(), marker, std::move(bytes), limits);
}

}  // namespace

std::optional<Marker> CheckMarker(const VerifyContext& context, Worker& worker) {
  Result<Marker> marker = ReadGoodMarker(context, worker);
  if (marker) return *marker;
  context.findings.Add(kMarkerRank, std::move(marker).error().AtPath(context.PathOf(kMarkerName)));
  return std::nullopt;
}

std::optional<IndexFile> CheckIndex(const VerifyContext& context, Worker& worker,
                                    const Marker& marker) {
  Result<IndexFile> index = ReadGoodIndex(context, worker, marker);
  if (!index) {
    context.findings.Add(
        kIndexRank, std::move(index).error().AtPath(context.PathOf(IndexName(marker.attempt))));
    return std::nullopt;
  }
  context.meter.Add(marker.index_size);
  return std::move(*index);
}

}  // namespace sealpoint::internal
