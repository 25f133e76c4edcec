// SPDX-License-Identifier: Apache-2.0
#include "lib/repack/draft.h"

#include <algorithm>
#include <utility>

#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/format/file_header.h"
#include "lib/format/marker.h"
#include "lib/series/series_scan.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal {

Result<std::optional<GivenFiles>> ReadDraft(const Storage& storage, const std::string& path,
                                            const Limits& limits) {
  const auto directory = storage.OpenDirectory(path);
  if (!directory) return std::optional<GivenFiles>();
  SEALPOINT_ASSIGN_OR_RETURN(std::optional<Bytes> bytes, ReadMarkerBytes(**directory));
  if (!bytes || !RaiseDraftHeader(*bytes, FileKind::kMarker)) return std::optional<GivenFiles>();
  SEALPOINT_ASSIGN_OR_RETURN(MarkerFile file, DecodeMarkerFile(path, std::move(*bytes)));
  SEALPOINT_RETURN_IF_ERROR(CheckCommitted(path, file.marker));
  SEALPOINT_ASSIGN_OR_RETURN(Bytes index, ReadIndexBytes(**directory, file.marker, limits));
  // One that differs stays as it is: it is compared once more when it is opened, and refused.
  if (ComputeDigest(index) == file.marker.index_digest) {
    const MutableByteSpan all(index);
    RaiseDraftHeader(all.first(std::min(all.size(), kHeaderSize)), FileKind::kIndex);
    file.marker.index_digest = ComputeDigest(index);
  }
  const MarkerBytes marker = EncodeMarker(file.marker);
  return std::optional<GivenFiles>(
      {.marker = Bytes(marker.begin(), marker.end()), .index = std::move(index)});
}

}  // namespace sealpoint::internal
