// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FORMAT_MARKER_H_
#define SEALPOINT_LIB_FORMAT_MARKER_H_

#include <array>
#include <cstdint>
#include <optional>

#include "lib/format/file_header.h"

namespace sealpoint::internal::format {

enum class MarkerKind : std::uint32_t { kCommit = 1, kVoid = 2 };

struct Marker {
  MarkerKind kind = MarkerKind::kCommit;
  FeatureMasks features{};
  AttemptId attempt{};
  std::uint64_t step = kNoStep;
  AttemptId parent{};  // zero if none
  std::uint64_t sequence = 0;
  std::uint64_t index_size = 0;
  Digest index_digest{};
  std::uint64_t blob_count = 0;
  std::uint64_t total_bytes = 0;
  friend bool operator==(const Marker&, const Marker&) = default;
};

using MarkerBytes = std::array<std::byte, kMarkerSize>;

MarkerBytes EncodeMarker(const Marker& marker);

// Checks R-MRK-02 to R-MRK-04 and the header rules. A void marker is a valid result. `bytes` is the
// whole file, or the first kMarkerSize + 1 bytes of a longer one, by which its length is refused.
Result<Marker> DecodeMarker(ByteSpan bytes);

// The fields of a whole commit marker that have the same position in every format version: attempt,
// kind, parent and sequence (spec/container.md section 8). Empty if the bytes are damaged or the
// marker is of another kind.
std::optional<Marker> DecodeLineage(ByteSpan bytes);

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_MARKER_H_
