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

// Whether a compat bit is set that this version does not know: it may announce facts that are
// skipped (R-HDR-06, R-IDX-03).
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

// Writes the header fields into `out` (kHeaderSize or, for a marker, kMarkerSize bytes whose rest
// is already filled in) and then the header digest over all of it.
void EncodeHeader(const FileHeader& header, MutableByteSpan out);

// Checks R-HDR-01 to R-HDR-07 and R-HDR-10 on the begin of a file. `prefix` holds its first
// min(file size, kHeaderSizeMax) bytes: fewer would be taken for a file that ends there.
Result<FileHeader> DecodeHeader(ByteSpan prefix, FileKind expected_kind);

// Whether `file` is a header of this kind from its first to its last byte, of whatever version, and
// undamaged.
bool IsWholeHeader(ByteSpan file, FileKind kind);

// Makes `header`, if it is a whole one of the draft, the same of this version; returns whether it
// was. All others stay as they are.
bool RaiseDraftHeader(MutableByteSpan header, FileKind kind);

// The header digest as stored. Precondition: a decoded header.
Digest StoredHeaderDigest(ByteSpan header);

}  // namespace sealpoint::internal::format

#endif  // SEALPOINT_LIB_FORMAT_FILE_HEADER_H_
