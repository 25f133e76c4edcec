// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/blob_check.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/container/open_checkpoint.h"
#include "lib/container/rebase.h"
#include "lib/digest/hasher.h"
#include "lib/format/constants.h"
#include "lib/format/fields.h"

namespace sealpoint::internal::verify {
namespace {

// Records are read and remembered in batches of this many groups (1 MiB).
constexpr std::uint32_t kBatchGroups = 256;

std::uint32_t RecordsInGroup(std::uint32_t group, std::uint32_t record_count) {
  return std::min(format::kRecordsPerGroup, record_count - group * format::kRecordsPerGroup);
}

// R-BLB-01 and R-BLB-09. `fits`: all that is pinned is there, if perhaps more.
Status CheckLength(const Directory& directory, const metadata::BlobPin& pin, bool* fits) {
  *fits = false;
  Result<EntryInfo> entry = directory.Stat(format::BlobName(pin.id));
  if (!entry && entry.error().code() == Code::kNotFound) {
    return RuleError(Code::kIncomplete, "R-BLB-01", "the blob is missing");
  }
  if (!entry) return std::move(entry).error();
  if (entry->kind != EntryKind::kFile && entry->kind != EntryKind::kSymlink) {
    return RuleError(Code::kIncomplete, "R-BLB-01", "not a regular file where a blob should be");
  }
  *fits = entry->size_bytes >= pin.file_size;
  return container::CheckBlobSize(directory.path(), pin, entry->size_bytes);
}

}  // namespace

bool CheckBlobLength(const VerifyContext& context, const metadata::Metadata& index,
                     std::size_t blob) {
  const metadata::BlobPin pin = index.blob(blob);
  bool fits = false;
  Status status = CheckLength(context.directory, pin, &fits);
  context.findings.Add(BlobRank(blob),
                       std::move(status).AtPath(context.PathOf(format::BlobName(pin.id))));
  return fits;
}

BlobCheck::BlobCheck(const BlobCheckInput& input, std::size_t blob)
    : input_(input),
      context_(input.context),
      blob_(blob),
      pin_(input.map.index().blob(blob)),
      path_(input.context.PathOf(format::BlobName(pin_.id))) {}

void BlobCheck::Report(Status violation) {
  context_.findings.Add(BlobRank(blob_), std::move(violation).AtPath(path_));
}

void BlobCheck::ReportAt(std::uint64_t offset, Code code, std::string_view rule,
                         std::string message) {
  Report(Status(code, std::move(message)).AtRule(rule).AtOffset(offset));
}

std::optional<pipeline::RangeBytes> BlobCheck::Read(std::uint64_t offset, std::uint64_t size) {
  Result<pipeline::RangeBytes> range = pipeline::ReadRange(*file_, *worker_->pool, offset, size);
  if (range) return std::move(*range);
  Report(std::move(range).error().AtOffset(offset));
  return std::nullopt;
}

void BlobCheck::CheckPadding(std::uint64_t begin, std::uint64_t end) {
  const std::optional<pipeline::RangeBytes> range = Read(begin, end - begin);
  if (!range) return;
  context_.meter.Add(end - begin);
  const auto bad = std::find_if(range->bytes.begin(), range->bytes.end(),
                                [](std::byte b) { return b != std::byte{0}; });
  if (bad == range->bytes.end()) return;
  ReportAt(begin + static_cast<std::uint64_t>(bad - range->bytes.begin()), Code::kCorrupt,
           "R-BLB-08", "padding is not zero");
}

// Runs once, on one thread, whose scratch memory the functions below use through worker_. Findings
// go to the context, which takes them from any thread. Units are scanned by other threads after all
// blobs were checked: what they hold (walker, groups) is not changed any more then.
void BlobCheck::Run(Worker& worker, std::vector<ScanUnit>& units) {
  worker_ = &worker;
  Result<std::unique_ptr<ReadableFile>> file = context_.Open(format::BlobName(pin_.id));
  if (!file) {
    Report(std::move(file).error());
    return input_.totals.MissedManifest();
  }
  file_ = std::move(*file);
  const BlobKey key{.checkpoint = input_.checkpoint, .pin = pin_, .file = KeyOf(*file_)};
  choice_ = std::make_shared<ChunkChoice>(key, context_.options.part, context_.verified);

  // The trailer pins the header, and the header says how the manifest is to be read: what a bad one
  // pins is not checked (reader-rules.md section 5). The table is pinned by the index alone.
  const std::optional<format::Trailer> trailer = CheckTrailer();
  CheckAreaEnd(CheckTable(units), trailer);
  if (!trailer) return input_.totals.MissedManifest();
  const std::optional<format::FileHeader> header = CheckHeader(*trailer);
  const Result<format::BlobSections> sections =
      format::ComputeSections(trailer->chunks_end, trailer->record_count, trailer->manifest_size);
  SEALPOINT_CHECK(sections.ok());  // DecodeTrailer checked the same numbers
  static_assert(format::kRecordSize % format::kSectionAlignment == 0,
                "no padding after the records");
  if (header) {
    CheckManifest(*trailer, *sections, metadata::AnnouncedBy(header->features));
  } else {
    input_.totals.MissedManifest();
  }
  CheckPadding(sections->manifest_end, sections->trailer);
}

// The header, if it is the pinned one and good, and announces what the trailer has.
std::optional<format::FileHeader> BlobCheck::CheckHeader(const format::Trailer& trailer) {
  const std::optional<pipeline::RangeBytes> range =
      Read(0, std::min(format::kHeaderSizeMax, pin_.file_size));
  if (!range) return std::nullopt;
  context_.meter.Add(format::kHeaderSize);
  // The pin before the content: a header that is not the committed one is corrupt, whatever version
  // it claims to have.
  if (const Digest stored = format::StoredHeaderDigest(range->bytes);
      stored != trailer.header_digest) {
    Report(StoredDigestError("R-BLB-03", "header", stored, trailer.header_digest)
               .AtOffset(format::HeaderFields::kDigest.at));
    return std::nullopt;
  }
  Result<format::FileHeader> header = format::DecodeHeader(range->bytes, format::FileKind::kBlob);
  if (!header) {
    Report(std::move(header).error());
    return std::nullopt;
  }
  if (Status status = CheckHeaderPins(*header); !status.ok()) {
    Report(std::move(status));
    return std::nullopt;
  }
  if (const Status status = format::CheckExtension(trailer, header->features); !status.ok()) {
    Report(container::Rebased(status, pin_.file_size - format::kTrailerSize));
    return std::nullopt;
  }
  return *header;
}

// R-HDR-08 and R-HDR-09. Attempt tag and step are not compared: the blob may have been linked from
// an older checkpoint.
Status BlobCheck::CheckHeaderPins(const format::FileHeader& header) const {
  if (header.id != pin_.id) {
    return RuleError(Code::kCorrupt, "R-HDR-08", "blob id is ", header.id.ToHex(), ", expected ",
                     pin_.id.ToHex())
        .AtOffset(format::HeaderFields::kId.at);
  }
  // The index's masks equal the marker's.
  const format::FeatureMasks& features = input_.marker.features;
  if ((header.features.compat & ~features.compat) != 0) {
    return RuleError(Code::kCorrupt, "R-HDR-09", "compat features that the index does not have")
        .AtOffset(format::HeaderFields::kCompat.at);
  }
  if ((header.features.incompat & ~features.incompat) != 0) {
    return RuleError(Code::kCorrupt, "R-HDR-09", "incompat features that the index does not have")
        .AtOffset(format::HeaderFields::kIncompat.at);
  }
  return {};
}

// The trailer, if it is the pinned one and good.
std::optional<format::Trailer> BlobCheck::CheckTrailer() {
  const std::uint64_t at = pin_.file_size - format::kTrailerSize;
  const std::optional<pipeline::RangeBytes> range = Read(at, format::kTrailerSize);
  if (!range) return std::nullopt;
  context_.meter.Add(format::kTrailerSize);
  if (const Digest stored = format::StoredTrailerDigest(range->bytes);
      stored != pin_.trailer_digest) {
    Report(StoredDigestError("R-BLB-03", "trailer", stored, pin_.trailer_digest)
               .AtOffset(at + format::TrailerFields::kDigest.at));
    return std::nullopt;
  }
  const Result<format::Trailer> trailer = format::DecodeTrailer(range->bytes);
  if (!trailer) {
    Report(container::Rebased(trailer.error(), at));
    return std::nullopt;
  }
  if (!CheckTrailerPins(*trailer, range->bytes)) return std::nullopt;
  return *trailer;
}

// R-BLB-03, for the fields that index and trailer both have. Only the first that differs is
// reported: a trailer of another blob differs in most of them, and is one violation.
bool BlobCheck::CheckTrailerPins(const format::Trailer& trailer, ByteSpan bytes) {
  const std::uint64_t at = pin_.file_size - format::kTrailerSize;
  bool good = true;
  const auto expect = [&](bool holds, std::uint64_t field, std::string_view what) {
    if (holds || !good) return;
    ReportAt(at + field, Code::kCorrupt, "R-BLB-03",
             StrCat(what, " of the trailer differs from what the index pins"));
    good = false;
  };
  expect(trailer.blob == pin_.id, format::TrailerFields::kBlob.at, "blob id");
  expect(trailer.file_size == pin_.file_size, format::TrailerFields::kFileSize.at, "file size");
  expect(LoadLe<std::uint64_t>(bytes, format::TrailerFields::kTable.at) == pin_.table_offset,
         format::TrailerFields::kTable.at, "table offset");
  expect(trailer.record_count == pin_.record_count, format::TrailerFields::kRecordCount.at,
         "record count");
  expect(trailer.shard_count == pin_.shard_count, format::TrailerFields::kShardCount.at,
         "shard count");
  expect(trailer.group_list_digest == pin_.group_list_digest,
         format::TrailerFields::kGroupListDigest.at, "group list digest");
  return good;
}

std::optional<std::uint64_t> BlobCheck::CheckTable(std::vector<ScanUnit>& units) {
  const std::uint32_t group_count = format::GroupCount(pin_.record_count);
  const std::uint64_t list_size = std::uint64_t{group_count} * format::kDigestSize;
  Result<Bytes> read = ReadBytes(*file_, *worker_->pool, pin_.table_offset, list_size);
  if (!read) {
    Report(std::move(read).error().AtOffset(pin_.table_offset));
    return std::nullopt;
  }
  context_.meter.Add(list_size);
  const Digest computed = ComputeDigest(*read);
  if (computed != pin_.group_list_digest) {
    Report(DigestError("R-BLB-05", "group list", computed, pin_.group_list_digest)
               .AtOffset(pin_.table_offset));
    return std::nullopt;
  }
  // From here on the group list is trusted, and only by it a group of records.
  CheckPadding(pin_.table_offset + list_size,
               format::RecordsOffset(pin_.table_offset, pin_.record_count));
  const auto groups = std::make_shared<BlobGroups>(
      BlobGroups{.digests = std::move(*read), .is_bad = std::vector<bool>(group_count)});
  RecordWalker walker(input_.map, blob_, pin_.table_offset);
  for (std::uint32_t group = 0; group < group_count;) {
    const std::uint32_t end = std::min(group_count, group + kBatchGroups);
    CheckGroups(group, end, groups, walker, units);
    group = end;
  }
  return walker.last_end();
}

std::uint64_t BlobCheck::BytesToRead(const WalkedChunk& chunk) const {
  if (context_.options.level != VerifyLevel::kFull) return 0;
  const ChunkChoice::Kind kind = choice_->KindOf(chunk);
  if (kind == ChunkChoice::Kind::kToRead) {
    // An unchanged chunk stores nothing, and is compared with the bytes of the base all the same.
    const bool is_changed = chunk.record.codec == Codec::kChanges;
    return is_changed ? chunk.record.raw_size : chunk.record.stored_size;
  }
  context_.meter.PassOver(chunk.end() - chunk.begin(), kind == ChunkChoice::Kind::kKnown);
  return 0;
}

// The bytes of the chunks to be read whose records are good. A group without the right digest is
// marked and reported once, here, and its records are skipped: the scan of the payload passes over
// it.
std::uint64_t BlobCheck::WalkGroup(std::uint32_t group, std::uint64_t group_at, ByteSpan records,
                                   BlobGroups& groups, RecordWalker& walker) {
  if (const Status status = format::CheckGroup(groups.digests, group, records); !status.ok()) {
    groups.is_bad[group] = true;
    ReportAt(group_at, status.code(), status.place().rule, status.message());
    walker.Skip(RecordsInGroup(group, pin_.record_count));
    return 0;
  }
  std::uint64_t chunk_bytes = 0;
  for (std::uint64_t at = 0; at < records.size(); at += format::kRecordSize) {
    const Result<WalkedChunk> chunk = walker.Next(records.subspan(at, format::kRecordSize));
    if (!chunk) Report(container::Rebased(chunk.error(), group_at + at));
    if (chunk) chunk_bytes += BytesToRead(*chunk);
  }
  return chunk_bytes;
}

// Reads the records of some groups in one go.
void BlobCheck::CheckGroups(std::uint32_t first_group, std::uint32_t end_group,
                            const std::shared_ptr<BlobGroups>& groups, RecordWalker& walker,
                            std::vector<ScanUnit>& units) {
  const std::uint64_t at = format::RecordsOffset(pin_.table_offset, pin_.record_count) +
                           std::uint64_t{first_group} * format::kRecordGroupSize;
  const std::uint32_t records_end =
      std::min(pin_.record_count, end_group * format::kRecordsPerGroup);
  const std::uint32_t count = records_end - first_group * format::kRecordsPerGroup;
  const std::optional<pipeline::RangeBytes> range =
      Read(at, std::uint64_t{count} * format::kRecordSize);
  if (!range) return walker.Skip(count);
  context_.meter.Add(range->bytes.size());

  ScanUnit unit{.blob = blob_,
                .first_group = first_group,
                .end_group = first_group,
                .walker = walker,
                .groups = groups,
                .choice = choice_};
  std::uint64_t unit_bytes = 0;
  ByteSpan rest = range->bytes;
  for (std::uint32_t group = first_group; group < end_group; ++group) {
    const ByteSpan records =
        rest.first(RecordsInGroup(group, pin_.record_count) * format::kRecordSize);
    rest = rest.subspan(records.size());
    const std::uint64_t group_at = at + (group - first_group) * format::kRecordGroupSize;
    unit_bytes += WalkGroup(group, group_at, records, *groups, walker);
    unit.end_group = group + 1;
    const bool has_room = unit_bytes < input_.unit_size_bytes && unit.end_group < end_group;
    if (unit_bytes > 0 && has_room) continue;
    // The walker is copied when a unit ends: the next one begins where this walk has come to.
    if (unit_bytes > 0) units.push_back(unit);
    unit.first_group = unit.end_group;
    unit.walker = walker;
    unit_bytes = 0;
  }
}

// R-REC-04 and R-BLB-04 for the end of the last chunk, as far as its record and the trailer are
// good, and the padding after the chunk area.
void BlobCheck::CheckAreaEnd(std::optional<std::uint64_t> last_end,
                             const std::optional<format::Trailer>& trailer) {
  const auto reaches_the_table = [&](std::uint64_t end) {
    return AlignUp(end, format::kSectionAlignment) == pin_.table_offset;
  };
  if (last_end && pin_.record_count != 0 && !reaches_the_table(*last_end)) {
    const std::uint64_t last_record = format::RecordsOffset(pin_.table_offset, pin_.record_count) +
                                      (std::uint64_t{pin_.record_count} - 1) * format::kRecordSize;
    return ReportAt(
        last_record, Code::kCorrupt, "R-REC-04",
        StrCat("the last chunk ends at ", *last_end, ", the table begins at ", pin_.table_offset));
  }
  if (last_end && trailer && trailer->chunks_end != *last_end) {
    return ReportAt(pin_.file_size - format::kTrailerSize + format::TrailerFields::kChunksEnd.at,
                    Code::kCorrupt, "R-BLB-04",
                    StrCat("the chunk area ends at ", trailer->chunks_end,
                           ", the last chunk ends at ", *last_end));
  }
  if (!last_end && trailer) last_end = trailer->chunks_end;
  if (last_end && reaches_the_table(*last_end)) CheckPadding(*last_end, pin_.table_offset);
}

void BlobCheck::CheckManifest(const format::Trailer& trailer, const format::BlobSections& sections,
                              const metadata::AnnouncedFields& announced) {
  const std::uint64_t size_max = context_.options.limits.manifest_size_max_bytes;
  if (trailer.manifest_size > size_max) {
    ReportAt(sections.manifest, Code::kLimitExceeded, "R-IDX-01",
             StrCat("the manifest has ", trailer.manifest_size, " bytes, the limit is ", size_max));
    return input_.totals.MissedManifest();
  }
  Result<Bytes> read = ReadBytes(*file_, *worker_->pool, sections.manifest, trailer.manifest_size);
  if (!read) {
    Report(std::move(read).error().AtOffset(sections.manifest));
    return input_.totals.MissedManifest();
  }
  context_.meter.Add(read->size());
  const Digest computed = ComputeDigest(*read);
  if (computed != trailer.manifest_digest) {
    Report(DigestError("R-BLB-06", "manifest", computed, trailer.manifest_digest)
               .AtOffset(sections.manifest));
    return input_.totals.MissedManifest();
  }
  const auto bytes = std::make_shared<const Bytes>(std::move(*read));
  const Result<metadata::Metadata> manifest = metadata::Metadata::DecodeManifest(
      bytes, *bytes, {.record_count = pin_.record_count, .shard_count = pin_.shard_count},
      context_.options.limits, announced);
  if (!manifest) {
    Report(container::Rebased(manifest.error(), sections.manifest));
    return input_.totals.MissedManifest();
  }
  std::uint64_t raw_bytes = 0;  // sums fit, R-IDX-11
  for (const ShardEntry& shard : input_.map.OfBlob(blob_)) raw_bytes += shard.raw_size;
  if (trailer.raw_bytes != raw_bytes) {
    ReportAt(sections.trailer + format::TrailerFields::kRawBytes.at, Code::kCorrupt, "R-BLB-06",
             StrCat("the trailer counts ", trailer.raw_bytes, " raw bytes, the shards have ",
                    raw_bytes));
  }
  CompareManifest(*manifest, input_.map, blob_, input_.totals, [&](Status violation) {
    Report(std::move(violation).AtOffset(sections.manifest));
  });
}

}  // namespace sealpoint::internal::verify
