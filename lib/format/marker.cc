// SPDX-License-Identifier: Apache-2.0
#include "lib/format/marker.h"

#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/fields.h"

namespace sealpoint::internal::format {
namespace {

Status FieldError(std::size_t offset, std::string_view message) {
  return RuleError(Code::kCorrupt, "R-MRK-04", message).AtOffset(offset);
}

// R-MRK-03.
Result<MarkerKind> DecodeKind(ByteSpan bytes) {
  const auto value = LoadLe<std::uint32_t>(bytes, MarkerFields::kKind.at);
  switch (static_cast<MarkerKind>(value)) {
    case MarkerKind::kCommit:
    case MarkerKind::kVoid:
      return static_cast<MarkerKind>(value);
  }
  return RuleError(Code::kUnsupported, "R-MRK-03", "marker kind is ", value,
                   ", which is not registered")
      .AtOffset(MarkerFields::kKind.at);
}

// R-MRK-04 for a commit marker.
Status CheckCommit(const Marker& marker) {
  if (marker.attempt == marker.parent) {
    return FieldError(MarkerFields::kParent.at, StrCat("parent attempt is ", marker.parent.ToHex(),
                                                       ", which is the marker's own attempt"));
  }
  const bool has_parent = !marker.parent.is_zero();
  if (has_parent ? marker.sequence < 2 : marker.sequence != 1) {
    return FieldError(MarkerFields::kSequence.at,
                      StrCat("sequence is ", marker.sequence, ", expected ",
                             has_parent ? "at least 2 with a parent" : "1 without a parent"));
  }
  if (marker.index_size < kHeaderSize) {
    return FieldError(MarkerFields::kIndexSize.at,
                      StrCat("index length is ", marker.index_size, ", expected at least the ",
                             kHeaderSize, " bytes of its header"));
  }
  return {};
}

template <typename Value>
Status VoidFieldError(std::size_t offset, std::string_view field, const Value& found) {
  return FieldError(offset, StrCat(field, " is ", found, ", expected 0 in a void marker"));
}

// R-MRK-04 for a void marker, which pins nothing.
Status CheckVoid(const Marker& marker) {
  if (!marker.parent.is_zero()) {
    return VoidFieldError(MarkerFields::kParent.at, "parent attempt", marker.parent.ToHex());
  }
  if (marker.sequence != 0)
    return VoidFieldError(MarkerFields::kSequence.at, "sequence", marker.sequence);
  if (marker.index_size != 0)
    return VoidFieldError(MarkerFields::kIndexSize.at, "index length", marker.index_size);
  if (!marker.index_digest.is_zero()) {
    return VoidFieldError(MarkerFields::kIndexDigest.at, "index digest",
                          marker.index_digest.ToHex());
  }
  if (marker.blob_count != 0)
    return VoidFieldError(MarkerFields::kBlobCount.at, "blob count", marker.blob_count);
  if (marker.total_bytes != 0)
    return VoidFieldError(MarkerFields::kTotalBytes.at, "total bytes", marker.total_bytes);
  return {};
}

Status CheckFields(const Marker& marker) {
  if (marker.attempt.is_zero()) return FieldError(HeaderFields::kId.at, "attempt id is zero");
  return marker.kind == MarkerKind::kCommit ? CheckCommit(marker) : CheckVoid(marker);
}

// What decoding the common header leaves out: the reserved fields of a marker (R-HDR-06), and as
// much of R-HDR-08 as the file itself shows.
Status CheckAgainstHeader(ByteSpan bytes, const FileHeader& header) {
  for (const Field& field :
       {MarkerFields::kReserved, MarkerFields::kTailReserved, MarkerFields::kExtension}) {
    const bool is_announced =
        field.at == MarkerFields::kExtension.at && HasUnknownCompat(header.features);
    if (is_announced || AllZero(bytes.subspan(field.at, field.size))) continue;
    return RuleError(Code::kUnsupported, "R-HDR-06", "reserved field of the marker is not zero")
        .AtOffset(field.at);
  }
  if (header.id != header.attempt) {
    return RuleError(Code::kCorrupt, "R-HDR-08", "id of the marker is ", header.id.ToHex(),
                     ", expected its attempt tag ", header.attempt.ToHex())
        .AtOffset(HeaderFields::kId.at);
  }
  return {};
}

}  // namespace

MarkerBytes EncodeMarker(const Marker& marker) {
  MarkerBytes bytes{};
  const MutableByteSpan out(bytes);
  StoreLe(out, MarkerFields::kKind.at, static_cast<std::uint32_t>(marker.kind));
  StoreId(out, MarkerFields::kParent.at, marker.parent);
  StoreLe(out, MarkerFields::kSequence.at, marker.sequence);
  StoreLe(out, MarkerFields::kIndexSize.at, marker.index_size);
  StoreId(out, MarkerFields::kIndexDigest.at, marker.index_digest);
  StoreLe(out, MarkerFields::kBlobCount.at, marker.blob_count);
  StoreLe(out, MarkerFields::kTotalBytes.at, marker.total_bytes);
  EncodeHeader({.kind = FileKind::kMarker,
                .features = marker.features,
                .id = marker.attempt,
                .attempt = marker.attempt,
                .step = marker.step},
               out);
  return bytes;
}

Result<Marker> DecodeMarker(ByteSpan bytes) {
  if (bytes.size() != kMarkerSize) {
    return RuleError(Code::kCorrupt, "R-MRK-02", "marker has ",
                     bytes.size() < kMarkerSize ? StrCat(bytes.size(), " bytes") : "more",
                     ", expected ", kMarkerSize, " bytes")
        .AtOffset(bytes.size() < kMarkerSize ? bytes.size() : kMarkerSize);
  }
  SEALPOINT_ASSIGN_OR_RETURN(const FileHeader header, DecodeHeader(bytes, FileKind::kMarker));
  SEALPOINT_RETURN_IF_ERROR(CheckAgainstHeader(bytes, header));
  SEALPOINT_ASSIGN_OR_RETURN(const MarkerKind kind, DecodeKind(bytes));
  const Marker marker{.kind = kind,
                      .features = header.features,
                      .attempt = header.attempt,
                      .step = header.step,
                      .parent = LoadId<AttemptId>(bytes, MarkerFields::kParent.at),
                      .sequence = LoadLe<std::uint64_t>(bytes, MarkerFields::kSequence.at),
                      .index_size = LoadLe<std::uint64_t>(bytes, MarkerFields::kIndexSize.at),
                      .index_digest = LoadId<Digest>(bytes, MarkerFields::kIndexDigest.at),
                      .blob_count = LoadLe<std::uint64_t>(bytes, MarkerFields::kBlobCount.at),
                      .total_bytes = LoadLe<std::uint64_t>(bytes, MarkerFields::kTotalBytes.at)};
  SEALPOINT_RETURN_IF_ERROR(CheckFields(marker));
  return marker;
}

std::optional<Marker> DecodeLineage(ByteSpan bytes) {
  const auto kind = static_cast<std::uint32_t>(MarkerKind::kCommit);
  const bool is_whole = bytes.size() == kMarkerSize && IsWholeHeader(bytes, FileKind::kMarker);
  if (!is_whole || LoadLe<std::uint32_t>(bytes, MarkerFields::kKind.at) != kind) {
    return std::nullopt;
  }
  return Marker{.attempt = LoadId<AttemptId>(bytes, HeaderFields::kId.at),
                .parent = LoadId<AttemptId>(bytes, MarkerFields::kParent.at),
                .sequence = LoadLe<std::uint64_t>(bytes, MarkerFields::kSequence.at)};
}

}  // namespace sealpoint::internal::format
