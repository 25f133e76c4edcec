// SPDX-License-Identifier: Apache-2.0
#include "lib/format/trailer.h"

#include <algorithm>
#include <optional>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/chunk_table.h"
#include "lib/format/fields.h"

namespace sealpoint::internal::format {
namespace {

constexpr std::array<std::byte, 8> kTrailerMagic = {
    std::byte{0x89}, std::byte{'S'},  std::byte{'P'},  std::byte{'B'},
    std::byte{0x0d}, std::byte{0x0a}, std::byte{0x1a}, std::byte{0x0a}};

std::optional<std::uint64_t> CheckedAlignUp(std::uint64_t value, std::uint64_t alignment) {
  if (!CheckedAdd(value, alignment - 1)) return std::nullopt;
  return AlignUp(value, alignment);
}

// Places the sections one after the other; nothing if an offset does not fit 64 bits. The
// manifest's length comes from a file that is not trusted yet, hence the checked arithmetic at each
// step.
std::optional<BlobSections> PlaceSections(std::uint64_t chunks_end, std::uint32_t record_count,
                                          std::uint64_t manifest_size) {
  BlobSections sections;
  const auto table = CheckedAlignUp(chunks_end, kSectionAlignment);
  if (!table) return std::nullopt;
  sections.table = *table;
  // These two products fit: a 32-bit count times a small constant.
  sections.group_list_size = std::uint64_t{GroupCount(record_count)} * kDigestSize;
  sections.records_size = std::uint64_t{record_count} * kRecordSize;

  const auto list_end = CheckedAdd(sections.table, sections.group_list_size);
  const auto records = list_end ? CheckedAlignUp(*list_end, kSectionAlignment) : std::nullopt;
  if (!records) return std::nullopt;
  sections.records = *records;

  const auto records_end = CheckedAdd(sections.records, sections.records_size);
  const auto manifest =
      records_end ? CheckedAlignUp(*records_end, kSectionAlignment) : std::nullopt;
  const auto manifest_end = manifest ? CheckedAdd(*manifest, manifest_size) : std::nullopt;
  if (!manifest_end) return std::nullopt;
  sections.manifest = *manifest;
  sections.manifest_end = *manifest_end;

  const auto end = CheckedAdd<std::uint64_t>(*manifest_end, kTrailerSize);
  const auto file_size = end ? CheckedAlignUp(*end, kFileAlignment) : std::nullopt;
  if (!file_size) return std::nullopt;
  sections.file_size = *file_size;
  sections.trailer = *file_size - kTrailerSize;
  return sections;
}

// R-BLB-02.
Status CheckSelf(ByteSpan bytes) {
  if (!std::equal(kTrailerMagic.begin(), kTrailerMagic.end(), bytes.begin())) {
    return RuleError(Code::kCorrupt, "R-BLB-02",
                     "last 256 bytes of the blob do not begin with the magic of a trailer")
        .AtOffset(TrailerFields::kMagic.at);
  }
  const Digest computed = ComputeDigest(bytes.first(TrailerFields::kDigest.at));
  const Digest recorded = StoredTrailerDigest(bytes);
  if (computed != recorded) {
    return DigestError("R-BLB-02", "trailer", computed, recorded)
        .AtOffset(TrailerFields::kDigest.at);
  }
  if (const auto size = LoadLe<std::uint32_t>(bytes, TrailerFields::kTrailerSize.at);
      size != kTrailerSize) {
    return RuleError(Code::kCorrupt, "R-BLB-02", "trailer length is ", size, ", expected ",
                     kTrailerSize)
        .AtOffset(TrailerFields::kTrailerSize.at);
  }
  return {};
}

// R-IDX-08, R-HDR-06, and R-BLB-02 for the record size. The record size comes last, because it
// follows from the digest algorithm: with an unknown algorithm it is unsupported, not corrupt.
Status CheckVariant(ByteSpan bytes) {
  const auto algorithm = LoadLe<std::uint16_t>(bytes, TrailerFields::kAlgorithm.at);
  if (algorithm != static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128)) {
    return RuleError(Code::kUnsupported, "R-IDX-08", "digest algorithm of the trailer is ",
                     algorithm, ", this build reads ",
                     static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128))
        .AtOffset(TrailerFields::kAlgorithm.at);
  }
  if (!AllZero(bytes.subspan(TrailerFields::kReserved.at, TrailerFields::kReserved.size))) {
    return RuleError(Code::kUnsupported, "R-HDR-06", "reserved field of the trailer is not zero")
        .AtOffset(TrailerFields::kReserved.at);
  }
  if (const auto size = LoadLe<std::uint32_t>(bytes, TrailerFields::kRecordSize.at);
      size != kRecordSize) {
    return RuleError(Code::kCorrupt, "R-BLB-02", "record size is ", size, ", expected ",
                     kRecordSize)
        .AtOffset(TrailerFields::kRecordSize.at);
  }
  return {};
}

Status CheckOffset(ByteSpan bytes, std::size_t field, std::uint64_t computed,
                   std::string_view name) {
  const auto stored = LoadLe<std::uint64_t>(bytes, field);
  if (stored == computed) return {};
  return RuleError(Code::kCorrupt, "R-BLB-04", name, " is ", stored, ", expected ", computed)
      .AtOffset(field);
}

// R-BLB-04.
Status CheckSections(ByteSpan bytes, const Trailer& trailer) {
  const bool has_records = trailer.record_count != 0;
  // Chunks that equal those of a base store nothing (spec/delta.md).
  if (has_records ? trailer.chunks_end < kHeaderSize : trailer.chunks_end != kHeaderSize) {
    return RuleError(Code::kCorrupt, "R-BLB-04", "chunk area ends at ", trailer.chunks_end,
                     ", expected ", has_records ? "at least " : "", kHeaderSize, " with ",
                     trailer.record_count, " records")
        .AtOffset(TrailerFields::kChunksEnd.at);
  }
  Result<BlobSections> sections =
      ComputeSections(trailer.chunks_end, trailer.record_count, trailer.manifest_size);
  if (!sections) return std::move(sections).error().AtOffset(TrailerFields::kChunksEnd.at);
  SEALPOINT_RETURN_IF_ERROR(
      CheckOffset(bytes, TrailerFields::kTable.at, sections->table, "table offset"));
  SEALPOINT_RETURN_IF_ERROR(
      CheckOffset(bytes, TrailerFields::kRecords.at, sections->records, "records offset"));
  SEALPOINT_RETURN_IF_ERROR(
      CheckOffset(bytes, TrailerFields::kManifest.at, sections->manifest, "manifest offset"));
  return CheckOffset(bytes, TrailerFields::kFileSize.at, sections->file_size, "file size");
}

}  // namespace

Result<BlobSections> ComputeSections(std::uint64_t chunks_end, std::uint32_t record_count,
                                     std::uint64_t manifest_size) {
  const std::optional<BlobSections> sections =
      PlaceSections(chunks_end, record_count, manifest_size);
  if (sections) return *sections;
  return RuleError(Code::kCorrupt, "R-BLB-04", "end of the blob does not fit 64 bits");
}

std::uint64_t RecordsOffset(std::uint64_t table_offset, std::uint32_t record_count) {
  return AlignUp(table_offset + std::uint64_t{GroupCount(record_count)} * kDigestSize,
                 kSectionAlignment);
}

TrailerBytes EncodeTrailer(const Trailer& trailer) {
  const std::optional<BlobSections> sections =
      PlaceSections(trailer.chunks_end, trailer.record_count, trailer.manifest_size);
  SEALPOINT_CHECK(sections && sections->file_size == trailer.file_size);
  TrailerBytes bytes{};
  const MutableByteSpan out(bytes);
  std::copy(kTrailerMagic.begin(), kTrailerMagic.end(), out.begin());
  StoreLe(out, TrailerFields::kTrailerSize.at, static_cast<std::uint32_t>(kTrailerSize));
  StoreLe(out, TrailerFields::kRecordSize.at, static_cast<std::uint32_t>(kRecordSize));
  StoreId(out, TrailerFields::kBlob.at, trailer.blob);
  StoreLe(out, TrailerFields::kFileSize.at, trailer.file_size);
  StoreLe(out, TrailerFields::kChunksEnd.at, trailer.chunks_end);
  StoreLe(out, TrailerFields::kTable.at, sections->table);
  StoreLe(out, TrailerFields::kRecordCount.at, trailer.record_count);
  StoreLe(out, TrailerFields::kShardCount.at, trailer.shard_count);
  StoreLe(out, TrailerFields::kRecords.at, sections->records);
  StoreLe(out, TrailerFields::kManifest.at, sections->manifest);
  StoreLe(out, TrailerFields::kManifestSize.at, trailer.manifest_size);
  StoreLe(out, TrailerFields::kRawBytes.at, trailer.raw_bytes);
  StoreId(out, TrailerFields::kGroupListDigest.at, trailer.group_list_digest);
  StoreId(out, TrailerFields::kManifestDigest.at, trailer.manifest_digest);
  StoreId(out, TrailerFields::kHeaderDigest.at, trailer.header_digest);
  StoreLe(out, TrailerFields::kAlgorithm.at, static_cast<std::uint16_t>(trailer.digest_algorithm));
  StoreId(out, TrailerFields::kDigest.at, ComputeDigest(out.first(TrailerFields::kDigest.at)));
  return bytes;
}

Result<Trailer> DecodeTrailer(ByteSpan bytes) {
  SEALPOINT_CHECK(bytes.size() == kTrailerSize);
  SEALPOINT_RETURN_IF_ERROR(CheckSelf(bytes));
  SEALPOINT_RETURN_IF_ERROR(CheckVariant(bytes));
  const Trailer trailer{
      .blob = LoadId<BlobId>(bytes, TrailerFields::kBlob.at),
      .file_size = LoadLe<std::uint64_t>(bytes, TrailerFields::kFileSize.at),
      .chunks_end = LoadLe<std::uint64_t>(bytes, TrailerFields::kChunksEnd.at),
      .record_count = LoadLe<std::uint32_t>(bytes, TrailerFields::kRecordCount.at),
      .shard_count = LoadLe<std::uint32_t>(bytes, TrailerFields::kShardCount.at),
      .manifest_size = LoadLe<std::uint64_t>(bytes, TrailerFields::kManifestSize.at),
      .raw_bytes = LoadLe<std::uint64_t>(bytes, TrailerFields::kRawBytes.at),
      .group_list_digest = LoadId<Digest>(bytes, TrailerFields::kGroupListDigest.at),
      .manifest_digest = LoadId<Digest>(bytes, TrailerFields::kManifestDigest.at),
      .header_digest = LoadId<Digest>(bytes, TrailerFields::kHeaderDigest.at),
      .digest_algorithm = DigestAlgorithm::kXxh3_128,
      .is_extended =
          !AllZero(bytes.subspan(TrailerFields::kExtension.at, TrailerFields::kExtension.size))};
  SEALPOINT_RETURN_IF_ERROR(CheckSections(bytes, trailer));
  return trailer;
}

Status CheckExtension(const Trailer& trailer, const FeatureMasks& features) {
  if (!trailer.is_extended || HasUnknownCompat(features)) return {};
  return RuleError(Code::kUnsupported, "R-HDR-06",
                   "extension of the trailer is not zero, and no "
                   "compat feature of the blob announces it")
      .AtOffset(TrailerFields::kExtension.at);
}

Digest StoredTrailerDigest(ByteSpan trailer) {
  return LoadId<Digest>(trailer, TrailerFields::kDigest.at);
}

}  // namespace sealpoint::internal::format
