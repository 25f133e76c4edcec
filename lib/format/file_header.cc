// SPDX-License-Identifier: Apache-2.0
#include "lib/format/file_header.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/digest/hasher.h"
#include "lib/format/fields.h"

namespace sealpoint::internal::format {
namespace {

constexpr std::array<std::byte, 8> kHeaderMagic = {
    std::byte{0x89}, std::byte{'S'},  std::byte{'P'},  std::byte{'T'},
    std::byte{0x0d}, std::byte{0x0a}, std::byte{0x1a}, std::byte{0x0a}};

constexpr std::uint32_t kHeaderSizeStep = 8;

Status HeaderError(Code code, std::string_view rule, std::size_t offset, std::string_view message) {
  return RuleError(code, rule, message).AtOffset(offset);
}

// The digest of the whole header, computed as if its digest field were zero.
Digest HeaderDigest(ByteSpan header) {
  constexpr std::array<std::byte, kDigestSize> kZeros{};
  digest::Hasher hasher;
  hasher.Update(header.first(HeaderFields::kDigest.at));
  hasher.Update(kZeros);
  hasher.Update(header.subspan(HeaderFields::kDigest.end()));
  return hasher.Finish();
}

// R-HDR-02 for a marker: any program may have made a file called COMMIT, so that other magic means
// "not a checkpoint". R-HDR-10 for an index or blob: those are referred to by a checkpoint, so that
// other magic means damage.
Status CheckMagic(ByteSpan prefix, FileKind expected_kind) {
  if (std::equal(kHeaderMagic.begin(), kHeaderMagic.end(), prefix.begin())) return {};
  const bool is_marker = expected_kind == FileKind::kMarker;
  return HeaderError(is_marker ? Code::kNotACheckpoint : Code::kCorrupt,
                     is_marker ? "R-HDR-02" : "R-HDR-10", HeaderFields::kMagic.at,
                     "file does not begin with the Sealpoint magic");
}

// R-HDR-01 to R-HDR-04. Returns the bytes of the header. Its length is a field that the digest
// covers itself, so the length must be in bounds before the digest can be computed, and is trusted
// only once the digest matches.
Result<ByteSpan> VerifiedHeader(ByteSpan prefix, FileKind expected_kind) {
  if (prefix.size() < kFrozenPrefixSize) {
    return RuleError(Code::kCorrupt, "R-HDR-01", "file has ", prefix.size(),
                     " bytes, expected at least ", kFrozenPrefixSize, " for the shortest header")
        .AtOffset(prefix.size());
  }
  SEALPOINT_RETURN_IF_ERROR(CheckMagic(prefix, expected_kind));
  const auto header_size = LoadLe<std::uint32_t>(prefix, HeaderFields::kHeaderSize.at);
  if (header_size % kHeaderSizeStep != 0 || header_size < kFrozenPrefixSize ||
      header_size > kHeaderSizeMax) {
    return RuleError(Code::kCorrupt, "R-HDR-03", "header length is ", header_size,
                     ", expected a multiple of ", kHeaderSizeStep, " from ", kFrozenPrefixSize,
                     " to ", kHeaderSizeMax)
        .AtOffset(HeaderFields::kHeaderSize.at);
  }
  if (prefix.size() < header_size) {
    return RuleError(Code::kCorrupt, "R-HDR-01", "file has ", prefix.size(),
                     " bytes, expected at least the ", header_size, " of its header")
        .AtOffset(prefix.size());
  }
  const ByteSpan header = prefix.first(header_size);
  const Digest computed = HeaderDigest(header);
  const Digest recorded = StoredHeaderDigest(header);
  if (computed != recorded) {
    return DigestError("R-HDR-04", "header", computed, recorded).AtOffset(HeaderFields::kDigest.at);
  }
  return header;
}

// The header length of a file kind; nothing if this version does not know the kind.
std::optional<std::size_t> PrescribedHeaderSize(std::uint32_t kind) {
  switch (static_cast<FileKind>(kind)) {
    case FileKind::kBlob:
    case FileKind::kIndex:
      return kHeaderSize;
    case FileKind::kMarker:
      return kMarkerSize;
  }
  return std::nullopt;
}

// R-HDR-05, and before its last part R-HDR-07, so that an intact file under the name of another
// kind is reported as such and not as a header of a later version.
Status CheckVersionAndKind(ByteSpan header, FileKind expected_kind) {
  const auto version = LoadLe<std::uint32_t>(header, HeaderFields::kVersion.at);
  if (version != kFormatVersion) {
    return RuleError(Code::kUnsupported, "R-HDR-05", "format version is ", version,
                     ", this build reads ", kFormatVersion,
                     version == kDraftVersion ? "; version 0 was the draft: `ckpt copy` of release "
                                                "1.0.x converts it to version 1"
                                              : "")
        .AtOffset(HeaderFields::kVersion.at);
  }
  const auto incompat = LoadLe<std::uint64_t>(header, HeaderFields::kIncompat.at);
  // Other codecs without deltas are none that this build knows.
  const bool is_known = (incompat & ~kKnownIncompatFeatures) == 0 &&
                        (incompat & kKnownIncompatFeatures) != kOtherCodecsFeature;
  if (!is_known) {
    return RuleError(Code::kUnsupported, "R-HDR-05", "incompat feature mask is ", incompat,
                     ", this build knows the bits of ", kKnownIncompatFeatures)
        .AtOffset(HeaderFields::kIncompat.at);
  }
  const auto kind = LoadLe<std::uint32_t>(header, HeaderFields::kKind.at);
  const std::optional<std::size_t> prescribed = PrescribedHeaderSize(kind);
  if (!prescribed) {
    return RuleError(Code::kUnsupported, "R-HDR-05", "file kind ", kind, " is not registered")
        .AtOffset(HeaderFields::kKind.at);
  }
  if (kind != static_cast<std::uint32_t>(expected_kind)) {
    return RuleError(Code::kCorrupt, "R-HDR-07", "file kind is ", kind, ", expected from its name ",
                     static_cast<std::uint32_t>(expected_kind))
        .AtOffset(HeaderFields::kKind.at);
  }
  if (header.size() != *prescribed) {
    return RuleError(Code::kUnsupported, "R-HDR-05", "header length is ", header.size(),
                     ", expected ", *prescribed, " of file kind ", kind)
        .AtOffset(HeaderFields::kHeaderSize.at);
  }
  return {};
}

// R-HDR-06.
Status CheckReserved(ByteSpan header, const Field& field) {
  if (AllZero(header.subspan(field.at, field.size))) return {};
  return HeaderError(Code::kUnsupported, "R-HDR-06", field.at,
                     "reserved field of the header is not zero");
}

}  // namespace

void EncodeHeader(const FileHeader& header, MutableByteSpan out) {
  SEALPOINT_CHECK(out.size() >= kHeaderSize && out.size() <= kHeaderSizeMax);
  std::copy(kHeaderMagic.begin(), kHeaderMagic.end(), out.begin());
  StoreLe(out, HeaderFields::kKind.at, static_cast<std::uint32_t>(header.kind));
  StoreLe(out, HeaderFields::kVersion.at, kFormatVersion);
  StoreLe(out, HeaderFields::kHeaderSize.at, static_cast<std::uint32_t>(out.size()));
  std::ranges::fill(out.subspan(HeaderFields::kReserved.at, HeaderFields::kReserved.size),
                    std::byte{0});
  StoreLe(out, HeaderFields::kCompat.at, header.features.compat);
  StoreLe(out, HeaderFields::kIncompat.at, header.features.incompat);
  StoreId(out, HeaderFields::kId.at, header.id);
  StoreId(out, HeaderFields::kAttempt.at, header.attempt);
  StoreLe(out, HeaderFields::kStep.at, header.step);
  std::ranges::fill(out.subspan(HeaderFields::kTailReserved.at, HeaderFields::kTailReserved.size),
                    std::byte{0});
  StoreId(out, HeaderFields::kDigest.at, HeaderDigest(out));
}

// The order of the checks decides the verdict (spec/reader-rules.md section 3): first the digest,
// so that a flipped bit is corrupt whatever it hits; then version and features, so that a file of a
// later version is unsupported and never corrupt; only then fields whose meaning this version
// defines.
Result<FileHeader> DecodeHeader(ByteSpan prefix, FileKind expected_kind) {
  SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan header, VerifiedHeader(prefix, expected_kind));
  SEALPOINT_RETURN_IF_ERROR(CheckVersionAndKind(header, expected_kind));
  SEALPOINT_RETURN_IF_ERROR(CheckReserved(header, HeaderFields::kReserved));
  SEALPOINT_RETURN_IF_ERROR(CheckReserved(header, HeaderFields::kTailReserved));
  return FileHeader{
      .kind = expected_kind,
      .features = {.compat = LoadLe<std::uint64_t>(header, HeaderFields::kCompat.at),
                   .incompat = LoadLe<std::uint64_t>(header, HeaderFields::kIncompat.at)},
      .id = LoadId<Id128>(header, HeaderFields::kId.at),
      .attempt = LoadId<AttemptId>(header, HeaderFields::kAttempt.at),
      .step = LoadLe<std::uint64_t>(header, HeaderFields::kStep.at)};
}

bool IsWholeHeader(ByteSpan file, FileKind kind) {
  const Result<ByteSpan> header = VerifiedHeader(file, kind);
  return header.ok() && header->size() == file.size() &&
         LoadLe<std::uint32_t>(file, HeaderFields::kKind.at) == static_cast<std::uint32_t>(kind);
}

bool RaiseDraftHeader(MutableByteSpan header, FileKind kind) {
  if (!IsWholeHeader(header, kind)) return false;
  if (LoadLe<std::uint32_t>(header, HeaderFields::kVersion.at) != kDraftVersion) return false;
  StoreLe(header, HeaderFields::kVersion.at, kFormatVersion);
  StoreId(header, HeaderFields::kDigest.at, HeaderDigest(header));
  return true;
}

Digest StoredHeaderDigest(ByteSpan header) {
  return LoadId<Digest>(header, HeaderFields::kDigest.at);
}

}  // namespace sealpoint::internal::format
