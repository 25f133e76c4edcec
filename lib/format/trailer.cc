// SPDX-License-Identifier: Apache-2.0
#include "lib/format/trailer.h"

#include <algorithm>
#include <optional>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/chunk_table.h"

namespace sealpoint::internal {
namespace {

constexpr std::array<std::byte, 8> kMagic = {std::byte{0x89}, std::byte{'S'},  std::byte{'P'},
                                             std::byte{'B'},  std::byte{0x0d}, std::byte{0x0a},
                                             std::byte{0x1a}, std::byte{0x0a}};

// Offsets of the fields, spec/container.md section 5.
constexpr std::size_t kMagicAt = 0;
constexpr std::size_t kTrailerSizeAt = 8;
constexpr std::size_t kRecordSizeAt = 12;
constexpr std::size_t kBlobAt = 16;
constexpr std::size_t kFileSizeAt = 32;
constexpr std::size_t kChunksEndAt = 40;
constexpr std::size_t kTableAt = 48;
constexpr std::size_t kRecordCountAt = 56;
constexpr std::size_t kShardCountAt = 60;
constexpr std::size_t kRecordsAt = 64;
constexpr std::size_t kManifestAt = 72;
constexpr std::size_t kManifestSizeAt = 80;
constexpr std::size_t kRawBytesAt = 88;
constexpr std::size_t kGroupListDigestAt = 96;
constexpr std::size_t kManifestDigestAt = 112;
constexpr std::size_t kHeaderDigestAt = 128;
constexpr std::size_t kAlgorithmAt = 144;
constexpr std::size_t kReservedAt = 146;
constexpr std::size_t kDigestAt = 240;
static_assert(kDigestAt + kDigestSize == kTrailerSize);

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
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes.begin())) {
    return RuleError(Code::kCorrupt, "R-BLB-02",
                     "last 256 bytes of the blob do not begin with the magic of a trailer")
        .AtOffset(kMagicAt);
  }
  const Digest computed = ComputeDigest(bytes.first(kDigestAt));
  const Digest recorded = StoredTrailerDigest(bytes);
  if (computed != recorded) {
    return DigestError("R-BLB-02", "trailer", computed, recorded).AtOffset(kDigestAt);
  }
  if (const auto size = LoadLe<std::uint32_t>(bytes, kTrailerSizeAt); size != kTrailerSize) {
    return RuleError(Code::kCorrupt, "R-BLB-02", "trailer length is ", size, ", expected ",
                     kTrailerSize)
        .AtOffset(kTrailerSizeAt);
  }
  return {};
}

// R-IDX-08, R-HDR-06, and R-BLB-02 for the record size. The record size comes last, because it
// follows from the digest algorithm: with an unknown algorithm it is unsupported, not corrupt.
Status CheckVariant(ByteSpan bytes) {
  const auto algorithm = LoadLe<std::uint16_t>(bytes, kAlgorithmAt);
  if (algorithm != static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128)) {
    return RuleError(Code::kUnsupported, "R-IDX-08", "digest algorithm of the trailer is ",
                     algorithm, ", this build reads ",
                     static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128))
        .AtOffset(kAlgorithmAt);
  }
  if (!AllZero(bytes.subspan(kReservedAt, kDigestAt - kReservedAt))) {
    return RuleError(Code::kUnsupported, "R-HDR-06", "reserved field of the trailer is not zero")
        .AtOffset(kReservedAt);
  }
  if (const auto size = LoadLe<std::uint32_t>(bytes, kRecordSizeAt); size != kRecordSize) {
    return RuleError(Code::kCorrupt, "R-BLB-02", "record size is ", size, ", expected ",
                     kRecordSize)
        .AtOffset(kRecordSizeAt);
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
  if (has_records ? trailer.chunks_end <= kHeaderSize : trailer.chunks_end != kHeaderSize) {
    return RuleError(Code::kCorrupt, "R-BLB-04", "chunk area ends at ", trailer.chunks_end,
                     ", expected ", has_records ? "more than " : "", kHeaderSize, " with ",
                     trailer.record_count, " records")
        .AtOffset(kChunksEndAt);
  }
  Result<BlobSections> sections =
      ComputeSections(trailer.chunks_end, trailer.record_count, trailer.manifest_size);
  if (!sections) return std::move(sections).error().AtOffset(kChunksEndAt);
  SEALPOINT_RETURN_IF_ERROR(CheckOffset(bytes, kTableAt, sections->table, "table offset"));
  SEALPOINT_RETURN_IF_ERROR(CheckOffset(bytes, kRecordsAt, sections->records, "records offset"));
  SEALPOINT_RETURN_IF_ERROR(CheckOffset(bytes, kManifestAt, sections->manifest, "manifest offset"));
  return CheckOffset(bytes, kFileSizeAt, sections->file_size, "file size");
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
  std::copy(kMagic.begin(), kMagic.end(), out.begin());
  StoreLe(out, kTrailerSizeAt, static_cast<std::uint32_t>(kTrailerSize));
  StoreLe(out, kRecordSizeAt, static_cast<std::uint32_t>(kRecordSize));
  StoreId(out, kBlobAt, trailer.blob);
  StoreLe(out, kFileSizeAt, trailer.file_size);
  StoreLe(out, kChunksEndAt, trailer.chunks_end);
  StoreLe(out, kTableAt, sections->table);
  StoreLe(out, kRecordCountAt, trailer.record_count);
  StoreLe(out, kShardCountAt, trailer.shard_count);
  StoreLe(out, kRecordsAt, sections->records);
  StoreLe(out, kManifestAt, sections->manifest);
  StoreLe(out, kManifestSizeAt, trailer.manifest_size);
  StoreLe(out, kRawBytesAt, trailer.raw_bytes);
  StoreId(out, kGroupListDigestAt, trailer.group_list_digest);
  StoreId(out, kManifestDigestAt, trailer.manifest_digest);
  StoreId(out, kHeaderDigestAt, trailer.header_digest);
  StoreLe(out, kAlgorithmAt, static_cast<std::uint16_t>(trailer.digest_algorithm));
  StoreId(out, kDigestAt, ComputeDigest(out.first(kDigestAt)));
  return bytes;
}

Result<Trailer> DecodeTrailer(ByteSpan bytes) {
  SEALPOINT_CHECK(bytes.size() == kTrailerSize);
  SEALPOINT_RETURN_IF_ERROR(CheckSelf(bytes));
  SEALPOINT_RETURN_IF_ERROR(CheckVariant(bytes));
  const Trailer trailer{.blob = LoadId(bytes, kBlobAt),
                        .file_size = LoadLe<std::uint64_t>(bytes, kFileSizeAt),
                        .chunks_end = LoadLe<std::uint64_t>(bytes, kChunksEndAt),
                        .record_count = LoadLe<std::uint32_t>(bytes, kRecordCountAt),
                        .shard_count = LoadLe<std::uint32_t>(bytes, kShardCountAt),
                        .manifest_size = LoadLe<std::uint64_t>(bytes, kManifestSizeAt),
                        .raw_bytes = LoadLe<std::uint64_t>(bytes, kRawBytesAt),
                        .group_list_digest = LoadId(bytes, kGroupListDigestAt),
                        .manifest_digest = LoadId(bytes, kManifestDigestAt),
                        .header_digest = LoadId(bytes, kHeaderDigestAt),
                        .digest_algorithm = DigestAlgorithm::kXxh3_128};
  SEALPOINT_RETURN_IF_ERROR(CheckSections(bytes, trailer));
  return trailer;
}

Digest StoredTrailerDigest(ByteSpan trailer) { return LoadId(trailer, kDigestAt); }

}  // namespace sealpoint::internal
