// SPDX-License-Identifier: Apache-2.0
//
// Blobs that break one rule each: sections, records, plain chunks.
#include <cstdint>

#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "tests/conformance/corpus_damage.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

// Offsets in a record.

// Offset of a field of record `i` of blob `number`.
std::uint64_t RecordField(int number, std::uint64_t i, std::uint64_t field) {
  return BaseBlob(number).sections.records + i * format::kRecordSize + field;
}
std::uint64_t TrailerField(std::uint64_t field) { return BaseBlob(0).sections.trailer + field; }

// Digests that do not hide a change of chunks from their records.
constexpr unsigned kAllButChunks = kSealAll & ~unsigned{kSealChunks};

void AddTrailers(Corpus& corpus) {
  AddChanged(corpus, "bad-R-BLB-02-trailer_digest", "01.blob",
             FlipByte(TrailerField(format::TrailerFields::kFileSize.at)), 0);
  AddChanged(corpus, "bad-R-BLB-02-trailer_magic", "01.blob",
             FlipByte(TrailerField(format::TrailerFields::kMagic.at)), kSealAll);
  AddChanged(corpus, "bad-R-BLB-02-record_size", "01.blob",
             SetField(TrailerField(format::TrailerFields::kRecordSize.at), std::uint32_t{80}),
             kSealAll);
  AddChanged(corpus, "bad-R-BLB-03-shard_count", "01.blob",
             SetField(TrailerField(format::TrailerFields::kShardCount.at), std::uint32_t{99}),
             kSealAll);
  AddChanged(corpus, "bad-R-BLB-03-another_trailer", "01.blob",
             FlipByte(TrailerField(format::TrailerFields::kBlob.at)), kSealTrailer);
  AddChanged(corpus, "bad-R-BLB-03-header_of_another_blob", "01.blob",
             FlipByte(TrailerField(format::TrailerFields::kHeaderDigest.at)),
             kSealTrailer | kSealPins | kSealIndex | kSealMarker);
  AddChanged(corpus, "bad-R-BLB-03-digest_of_trailer", "01.blob",
             FlipByte(TrailerField(format::TrailerFields::kDigest.at + 10)), 0);
  // Forged, up to the pin that the forger could not reach.
  const Change later_version = [](Bytes& file) {
    SetField(format::HeaderFields::kVersion.at, std::uint32_t{9})(file);
    ResealHeader(MutableByteSpan(file).first(format::kHeaderSize));
  };
  AddChanged(corpus, "bad-R-BLB-03-forged_header_of_a_later_version", "01.blob", later_version, 0);
  AddChanged(corpus, "bad-R-BLB-03-forged_header_and_trailer", "01.blob", later_version,
             kSealHeaders | kSealTrailer);
  AddChanged(
      corpus, "bad-R-BLB-04-end_before_the_last_byte", "01.blob",
      SetField(TrailerField(format::TrailerFields::kChunksEnd.at), BaseBlob(0).chunks_end - 1),
      kSealAll);
  AddChanged(
      corpus, "bad-R-BLB-04-records_offset", "01.blob",
      SetField(TrailerField(format::TrailerFields::kRecords.at), BaseBlob(0).sections.records + 64),
      kSealAll);
  AddChanged(corpus, "bad-R-BLB-04-chunks_end", "01.blob",
             SetField(TrailerField(format::TrailerFields::kChunksEnd.at), ~std::uint64_t{0}),
             kSealAll);
  AddChanged(corpus, "bad-R-HDR-06-reserved_of_trailer", "01.blob",
             SetField(TrailerField(format::TrailerFields::kReserved.at + 54), std::uint32_t{1}),
             kSealAll);
  AddChanged(corpus, "bad-R-IDX-08-digest_algorithm_of_trailer", "01.blob",
             SetField(TrailerField(format::TrailerFields::kAlgorithm.at), std::uint16_t{2}),
             kSealAll);
}

}  // namespace

void AddBadBlobs(Corpus& corpus) {
  const format::BlobSections& at = BaseBlob(0).sections;
  AddTrailers(corpus);
  AddChanged(corpus, "bad-R-BLB-05-record_group", "01.blob",
             FlipByte(RecordField(0, 1, format::RecordFields::kRawDigest.at + 1)), 0);
  AddChanged(corpus, "bad-R-BLB-05-group_list", "01.blob", FlipByte(at.table), 0);
  AddChanged(corpus, "bad-R-BLB-06-manifest_digest", "01.blob", FlipByte(at.manifest + 20), 0);
  AddChanged(corpus, "bad-R-BLB-06-raw_bytes", "01.blob",
             SetField(TrailerField(format::TrailerFields::kRawBytes.at), std::uint64_t{1}),
             kSealAll);
  AddChanged(corpus, "bad-R-BLB-08-padding", "01.blob", FlipByte(at.trailer - 1), 0);
  AddChanged(corpus, "bad-R-BLB-08-padding_of_the_group_list", "01.blob",
             FlipByte(at.table + at.group_list_size), 0);
  AddChanged(corpus, "bad-R-BLB-08-padding_between_shards", "01.blob",
             FlipByte(BaseBlob(0).records[1].offset - 1), 0);
}

void AddBadRecords(Corpus& corpus) {
  // Blob 1 ends with the two chunks of the object "rng".
  const std::uint64_t rng = BaseBlob(1).records.size() - 2;
  AddChanged(corpus, "bad-R-REC-01-chunk_number", "02.blob",
             SetField(RecordField(1, rng + 1, format::RecordFields::kChunk.at), std::uint32_t{0}),
             kSealAll);
  AddChanged(corpus, "bad-R-REC-01-shard_ordinal", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kShard.at), std::uint32_t{1}),
             kSealAll);
  MiniSpec shorter = BaseSpec();
  shorter.hooks.records = [=](int blob, std::vector<format::ChunkRecord>& records) {
    if (blob != 1) return;
    --records[rng].raw_size;
    --records[rng].stored_size;
  };
  shorter.hooks.trailer = [](int blob, format::Trailer& trailer) {
    if (blob == 1) ++trailer.raw_bytes;
  };
  corpus.Add("bad-R-REC-02-raw_length", shorter);
  AddChanged(corpus, "bad-R-REC-03-stored_length", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kStoredSize.at), std::uint32_t{1}),
             kAllButChunks);
  AddChanged(corpus, "bad-R-REC-03-stored_digest_of_a_plain_chunk", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kStoredDigest.at), std::uint32_t{1}),
             kSealAll);
  AddChanged(corpus, "bad-R-REC-03-coded_chunk_that_did_not_shrink", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kCodec.at), std::uint16_t{1}),
             kAllButChunks);
  AddChanged(
      corpus, "bad-R-REC-03-long_coded_chunk", "01.blob",
      [](Bytes& file) {
        SetField(RecordField(0, 0, format::RecordFields::kCodec.at), std::uint16_t{1})(file);
        SetField(RecordField(0, 0, format::RecordFields::kRawSize.at),
                 (std::uint32_t{1} << 24) + 1)(file);
      },
      kAllButChunks);
  AddChanged(corpus, "bad-R-REC-04-gap", "02.blob",
             SetField(RecordField(1, rng + 1, format::RecordFields::kOffset.at),
                      BaseBlob(1).records[rng + 1].offset + 64),
             kAllButChunks);
  AddChanged(corpus, "bad-R-REC-04-first_shard", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kOffset.at),
                      BaseBlob(0).records[0].offset + 32),
             kAllButChunks);
  MiniSpec longer = BaseSpec();
  longer.hooks.chunk_area = [](int blob, Bytes& area) {
    if (blob == 0) area.resize(area.size() + format::kSectionAlignment);
  };
  corpus.Add("bad-R-REC-04-room_behind_the_last_chunk", longer);
  AddChanged(
      corpus, "bad-R-REC-04-offset_that_wraps", "02.blob",
      SetField(RecordField(1, rng + 1, format::RecordFields::kOffset.at), ~std::uint64_t{0} - 10),
      kAllButChunks);
  AddChanged(corpus, "bad-R-REC-05-source_blob", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kSourceBlob.at), std::uint32_t{1}),
             kSealAll);
  AddChanged(corpus, "bad-R-REC-05-reserved", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kReserved.at), std::uint16_t{1}),
             kSealAll);
  AddChanged(corpus, "bad-R-COD-01-codec", "01.blob",
             SetField(RecordField(0, 0, format::RecordFields::kCodec.at), std::uint16_t{99}),
             kSealAll);
  AddChanged(corpus, "bad-R-CHK-02-raw_digest", "01.blob", FlipByte(BaseBlob(0).records[0].offset),
             0);
  AddChanged(corpus, "bad-R-CHK-02-last_byte_of_an_object", "02.blob",
             FlipByte(BaseBlob(1).chunks_end - 1), 0);
  AddChanged(corpus, "bad-R-CHK-02-digest_in_the_record", "01.blob",
             FlipByte(RecordField(0, 2, format::RecordFields::kRawDigest.at)), kAllButChunks);
}

}  // namespace sealpoint::testing
