// SPDX-License-Identifier: Apache-2.0
//
// Proves that no trailer, manifest, record or coded chunk makes its decoder crash or blame anything
// but the bytes, even if every digest that would keep the damage away from it is right.
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/support/target.h"
#include "fuzz/support/walk_metadata.h"
#include "lib/codec/chunk_codec.h"
#include "lib/format/chunk_table.h"
#include "lib/format/file_header.h"
#include "lib/format/trailer.h"
#include "lib/metadata/metadata.h"
#include "tests/support/container/format_surgery.h"

namespace sealpoint::fuzz {
namespace {

namespace format = internal::format;

using format::ChunkRecord;
using format::Trailer;
using internal::metadata::Metadata;

constexpr std::uint64_t kChunkMax = 1 * kMiB;

template <typename T>
std::optional<T> Check(const Result<T>& result) {
  if (result.ok()) return *result;
  RequireAnswer(result.error());
  return std::nullopt;
}

std::optional<Trailer> CheckTrailer(Bytes& file) {
  const MutableByteSpan bytes = MutableByteSpan(file).last(format::kTrailerSize);
  Check(format::DecodeTrailer(bytes));
  testing::ResealTrailer(bytes);
  const std::optional<Trailer> trailer = Check(format::DecodeTrailer(bytes));
  if (trailer) {
    format::TrailerBytes again = format::EncodeTrailer(*trailer);
    constexpr format::Field kExtension = format::TrailerFields::kExtension;
    std::ranges::copy(bytes.subspan(kExtension.at, kExtension.size), again.begin() + kExtension.at);
    testing::ResealTrailer(again);
    Require(std::ranges::equal(again, bytes), "an accepted trailer has a second encoding");
  }
  return trailer;
}

void CheckChunk(ByteSpan file, const ChunkRecord& record) {
  if (record.raw_size > kChunkMax || record.offset > file.size()) return;
  if (record.stored_size > file.size() - record.offset) return;
  Bytes raw(record.raw_size);
  for (const std::uint32_t element_size : {1u, 4u, 7u}) {
    const Status status = internal::codec::ChunkCodec().Decode(
        record.codec, element_size, file.subspan(record.offset, record.stored_size), raw);
    if (!status.ok()) RequireAnswer(status);
  }
}

std::vector<ChunkRecord> CheckRecords(ByteSpan file, const format::BlobSections& at,
                                      std::uint32_t count) {
  std::vector<ChunkRecord> records;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto record = Check(format::DecodeRecord(
        file.subspan(at.records + i * format::kRecordSize, format::kRecordSize)));
    if (!record) continue;
    records.push_back(*record);
    CheckChunk(file, *record);
  }
  return records;
}

// Each shard of the manifest against the records from its first one on.
void CheckShards(const Metadata& manifest, const std::vector<ChunkRecord>& records) {
  for (std::size_t t = 0; t < manifest.tensor_count(); ++t) {
    const internal::metadata::TensorView tensor = manifest.tensor(t);
    const std::vector<Region> regions = tensor.regions();
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const std::uint64_t raw_size = regions[i].element_count() * tensor.element_size();
      const std::uint64_t first = tensor.shard_ref(i).first_record;
      const std::uint64_t count = internal::metadata::ChunkCount(raw_size, tensor.chunk_size());
      if (first + count > records.size()) continue;
      const Status status =
          format::CheckShardRecords({.raw_size = raw_size, .chunk_size = tensor.chunk_size()}, 0,
                                    std::span(records).subspan(first, count));
      if (!status.ok()) RequireAnswer(status);
    }
  }
}

void CheckBlob(std::shared_ptr<Bytes> file) {
  const ByteSpan prefix = ByteSpan(*file).first(std::min(file->size(), format::kHeaderSizeMax));
  Check(format::DecodeHeader(prefix, format::FileKind::kBlob));
  const std::optional<Trailer> trailer = CheckTrailer(*file);
  if (!trailer || trailer->file_size != file->size()) return;
  const auto at = Check(
      format::ComputeSections(trailer->chunks_end, trailer->record_count, trailer->manifest_size));
  Require(at && at->file_size == file->size(), "an accepted trailer has no sections");
  const std::vector<ChunkRecord> records = CheckRecords(*file, *at, trailer->record_count);
  // The manifest of a file lies at a multiple of 64 in memory that is aligned.
  const auto manifest = Check(Metadata::DecodeManifest(
      file, ByteSpan(*file).subspan(at->manifest, trailer->manifest_size),
      {.record_count = trailer->record_count, .shard_count = trailer->shard_count}, {}));
  if (!manifest) return;
  WalkMetadata(*manifest);
  CheckShards(*manifest, records);
}

}  // namespace
}  // namespace sealpoint::fuzz

// The input is a blob file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace sealpoint;
  const ByteSpan input = fuzz::AsInput(data, size);
  if (input.size() < internal::format::kHeaderSize + internal::format::kTrailerSize) return 0;
  fuzz::CheckBlob(std::make_shared<Bytes>(input.begin(), input.end()));
  return 0;
}
