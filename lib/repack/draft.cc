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

namespace sealpoint::internal::repack {

Result<std::optional<container::GivenFiles>> ReadDraft(const Storage& storage,
                                                       const std::string& path,
                                                       const Limits& limits) {
  const auto directory = storage.OpenDirectory(path);
  if (!directory) return std::optional<container::GivenFiles>();
  SEALPOINT_ASSIGN_OR_RETURN(std::optional<Bytes> bytes, series::ReadMarkerBytes(**directory));
  if (!bytes || !format::RaiseDraftHeader(*bytes, format::FileKind::kMarker))
    return std::optional<container::GivenFiles>();
  SEALPOINT_ASSIGN_OR_RETURN(container::MarkerFile file,
                             container::DecodeMarkerFile(path, std::move(*bytes)));
  SEALPOINT_RETURN_IF_ERROR(container::CheckCommitted(path, file.marker));
  SEALPOINT_ASSIGN_OR_RETURN(Bytes index,
                             container::ReadIndexBytes(**directory, file.marker, limits));
  // One that differs stays as it is: it is compared once more when it is opened, and refused.
  if (ComputeDigest(index) == file.marker.index_digest) {
    const MutableByteSpan all(index);
    format::RaiseDraftHeader(all.first(std::min(all.size(), format::kHeaderSize)),
                             format::FileKind::kIndex);
    file.marker.index_digest = ComputeDigest(index);
  }
  const format::MarkerBytes marker = format::EncodeMarker(file.marker);
  return std::optional<container::GivenFiles>(
      {.marker = Bytes(marker.begin(), marker.end()), .index = std::move(index)});
}

}  // namespace sealpoint::internal::repack
