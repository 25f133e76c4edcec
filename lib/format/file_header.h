// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FORMAT_FILE_HEADER_H_
#define SEALPOINT_LIB_FORMAT_FILE_HEADER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/format/constants.h"
#include "sealpoint/bytes.h"
#include "sealpoint/id.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::format {

struct FeatureMasks {
  std::uint64_t compat = 0;
  std::uint64_t incompat = 0;
  friend bool operator==(const FeatureMasks&, const FeatureMasks&) = default;
};

// True if a compat bit is set that this version does not know; it may announce data that is skipped
// (R-HDR-06, R-IDX-03).
constexpr bool HasUnknownCompat(const FeatureMasks& features) {
  return (features.compat & ~kKnownCompatFeatures) != 0;
}

// The common file header. Fields that follow from the kind are left out.
struct FileHeader {
  FileKind kind = FileKind::kBlob;
  FeatureMasks features{};
  Id128 id{};
  AttemptId attempt{};  // zero if it was not known
  std::uint64_t step = kNoStep;
  friend bool operator==(const FileHeader&, const FileHeader&) = default;
};

// Writes the header fields into `out`, and then the header digest over all of it. `out` has
// kHeaderSize bytes, or, for a marker, kMarkerSize bytes with the rest already filled in.
void EncodeHeader(const FileHeader& header, MutableByteSpan out);

// Checks R-HDR-01 to R-HDR-07 and R-HDR-10 at the beginning of a file. `prefix` must hold its first
// min(file size, kHeaderSizeMax) bytes; with fewer bytes the file would appear truncated.
Result<FileHeader> DecodeHeader(ByteSpan prefix, FileKind expected_kind);

// True if `file` consists of exactly one undamaged header of this kind, in any version.
bool IsWholeHeader(ByteSpan file, FileKind kind);

// Converts `header` to this version if it is a whole header of the draft, and returns true. Leaves
// all others unchanged.
bool RaiseDraftHeader(MutableByteSpan header, FileKind kind);

// The header digest as stored. Precondition: a decoded header.
Digest StoredHeaderDigest(ByteSpan header);

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_FILE_HEADER_H_
