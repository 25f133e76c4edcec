// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/chunk_scan.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/digest/hasher.h"
#include "readers/verify/read_ahead.h"

namespace sealpoint::internal::verify {
namespace {

class UnitScan {
 public:
  UnitScan(const BlobCheckInput& input, const ScanUnit& unit, Worker& worker,
           pipeline::ThreadPool& io)
      : map_(input.map),
        context_(input.context),
        unit_(unit),
        worker_(worker),
        io_(io),
        pin_(input.map.index().blob(unit.blob)),
        path_(input.context.PathOf(format::BlobName(pin_.id))) {}

  Status Run();

 private:
  Result<std::vector<WalkedChunk>> ReadChunkList(const ReadableFile& file);
  Status ScanStretch(const ReadableFile& file, std::span<const WalkedChunk> chunks);
  // The bytes from position_ on; `lost`: they could not be read.
  void Consume(ByteSpan bytes);
  void Lose(std::uint64_t size);
  // The next chunks that store no bytes.
  void ConsumeEmpty();
  // How many of `size` bytes at position_ belong to the padding before, or to, the next chunk.
  std::uint64_t Reach(std::uint64_t size) const;
  bool InPadding() const { return position_ < chunks_.front().record.offset; }
  void Step(std::uint64_t size);

  void TakePadding(ByteSpan bytes);
  void TakePlain(const WalkedChunk& chunk, ByteSpan bytes);
  void TakeCoded(const WalkedChunk& chunk, ByteSpan bytes);
  void CheckCoded(const WalkedChunk& chunk, ByteSpan stored);
  void CheckRaw(const WalkedChunk& chunk, const Digest& digest);
  Status Decode(const WalkedChunk& chunk, ByteSpan stored, MutableByteSpan raw);
  void Report(Status violation) {
    context_.findings.Add(BlobRank(unit_.blob), std::move(violation).AtPath(path_));
  }
  void ReportChunk(const WalkedChunk& chunk, Status violation) {
    Report(map_.AtItemOf(*chunk.shard, std::move(violation)).AtOffset(chunk.record.offset));
  }

  const ShardMap& map_;
  const VerifyContext& context_;
  const ScanUnit& unit_;
  Worker& worker_;
  pipeline::ThreadPool& io_;
  const metadata::BlobPin pin_;
  const std::string path_;

  std::span<const WalkedChunk> chunks_;  // not yet checked
  std::uint64_t position_ = 0;
  std::uint64_t good_from_ = 0;  // from there to position_ all bytes of the next chunk are good
  digest::Hasher hasher_;
  device::StagingBuffer assembly_;  // stored bytes of a coded chunk that comes in several parts
  bool chunk_lost_ = false;
};

// The good records of the unit. They are read again, since keeping those of all blobs would take
// memory without a bound; their digests are checked again, since the second read may differ.
Result<std::vector<WalkedChunk>> UnitScan::ReadChunkList(const ReadableFile& file) {
  const std::uint64_t at = format::RecordsOffset(pin_.table_offset, pin_.record_count) +
                           std::uint64_t{unit_.first_group} * format::kRecordGroupSize;
  const std::uint32_t begin = unit_.first_group * format::kRecordsPerGroup;
  const std::uint32_t end = std::min(pin_.record_count, unit_.end_group * format::kRecordsPerGroup);
  SEALPOINT_ASSIGN_OR_RETURN(const pipeline::RangeBytes range,
                             pipeline::ReadRange(file, *worker_.pool, at,
                                                 std::uint64_t{end - begin} * format::kRecordSize));
  std::vector<WalkedChunk> chunks;
  RecordWalker walker = unit_.walker;
  for (std::uint32_t group = unit_.first_group; group < unit_.end_group; ++group) {
    const std::uint64_t group_at =
        std::uint64_t{group - unit_.first_group} * format::kRecordGroupSize;
    const ByteSpan records = range.bytes.subspan(
        group_at, std::min(format::kRecordGroupSize, range.bytes.size() - group_at));
    if (const Status status = format::CheckGroup(unit_.groups->digests, group, records);
        !status.ok()) {
      // The first read found the same, unless this one went wrong alone.
      if (!unit_.groups->is_bad[group]) {
        Report(Status(status.code(), status.message())
                   .AtRule(status.place().rule)
                   .AtOffset(at + group_at));
      }
      walker.Skip(static_cast<std::uint32_t>(records.size() / format::kRecordSize));
      continue;
    }
    for (std::size_t i = 0; i < records.size(); i += format::kRecordSize) {
      Result<WalkedChunk> chunk = walker.Next(records.subspan(i, format::kRecordSize));
      if (!chunk || unit_.choice->KindOf(*chunk) != ChunkChoice::Kind::kToRead) continue;
      chunks.push_back(*chunk);
    }
  }
  return chunks;
}

Status UnitScan::Run() {
  SEALPOINT_ASSIGN_OR_RETURN(const auto file, context_.Open(format::BlobName(pin_.id)));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<WalkedChunk> chunks, ReadChunkList(*file));
  // Chunks are contiguous except where a record between them is bad, or one is not to be read.
  for (std::size_t begin = 0; begin < chunks.size();) {
    std::size_t end = begin + 1;
    while (end < chunks.size() && chunks[end].padding_begin == chunks[end - 1].end()) ++end;
    SEALPOINT_RETURN_IF_ERROR(ScanStretch(*file, std::span(chunks).subspan(begin, end - begin)));
    begin = end;
  }
  return {};
}

Status UnitScan::ScanStretch(const ReadableFile& file, std::span<const WalkedChunk> chunks) {
  chunks_ = chunks;
  chunk_lost_ = false;
  position_ = chunks.front().begin();
  good_from_ = position_;
  ReadAhead reader(file, *worker_.pool, io_, position_, chunks.back().end());
  while (true) {
    SEALPOINT_ASSIGN_OR_RETURN(const auto part, reader.Next());
    if (!part) {
      ConsumeEmpty();
      return {};
    }
    if (part->status.ok()) {
      Consume(part->bytes);
      context_.meter.Add(part->size);
      SEALPOINT_RETURN_IF_ERROR(context_.meter.failure());
    } else {
      Report(Status(part->status).AtOffset(part->offset));
      Lose(part->size);
    }
  }
}

std::uint64_t UnitScan::Reach(std::uint64_t size) const {
  const WalkedChunk& chunk = chunks_.front();
  return std::min(size, (InPadding() ? chunk.record.offset : chunk.end()) - position_);
}

void UnitScan::Step(std::uint64_t size) {
  position_ += size;
  if (position_ < chunks_.front().end()) return;
  chunks_ = chunks_.subspan(1);
  chunk_lost_ = false;
  good_from_ = position_;
}

void UnitScan::Consume(ByteSpan bytes) {
  while (!bytes.empty()) {
    ConsumeEmpty();
    const ByteSpan part = bytes.first(Reach(bytes.size()));
    const WalkedChunk& chunk = chunks_.front();
    if (InPadding()) {
      TakePadding(part);
      position_ += part.size();
    } else {
      if (!chunk_lost_) {
        chunk.record.codec == Codec::kNone ? TakePlain(chunk, part) : TakeCoded(chunk, part);
      }
      Step(part.size());
    }
    bytes = bytes.subspan(part.size());
  }
}

void UnitScan::ConsumeEmpty() {
  while (!chunks_.empty() && !InPadding() && chunks_.front().end() == position_) {
    CheckCoded(chunks_.front(), {});
    Step(0);
  }
}

void UnitScan::Lose(std::uint64_t size) {
  while (size > 0) {
    ConsumeEmpty();
    const std::uint64_t part = Reach(size);
    size -= part;
    if (InPadding()) {
      good_from_ = chunks_.front().record.offset;
      position_ += part;
      continue;
    }
    if (!chunk_lost_) {
      chunk_lost_ = true;
      (void)hasher_.Finish();  // forgets the beginning of the chunk
      assembly_ = {};
    }
    Step(part);
  }
}

void UnitScan::TakePadding(ByteSpan bytes) {
  const auto bad =
      std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
  if (bad == bytes.end()) return;
  good_from_ = chunks_.front().record.offset;
  Report(RuleError(Code::kCorrupt, "R-BLB-08", "padding is not zero")
             .AtOffset(position_ + static_cast<std::uint64_t>(bad - bytes.begin())));
}

void UnitScan::TakePlain(const WalkedChunk& chunk, ByteSpan bytes) {
  if (bytes.size() == chunk.record.stored_size) return CheckRaw(chunk, ComputeDigest(bytes));
  hasher_.Update(bytes);
  if (position_ + bytes.size() == chunk.end()) CheckRaw(chunk, hasher_.Finish());
}

void UnitScan::TakeCoded(const WalkedChunk& chunk, ByteSpan bytes) {
  if (bytes.size() == chunk.record.stored_size) return CheckCoded(chunk, bytes);
  if (position_ == chunk.record.offset) {
    Result<device::StagingBuffer> buffer = worker_.pool->AcquireScratch(chunk.record.stored_size);
    if (!buffer) {
      chunk_lost_ = true;
      return ReportChunk(chunk, std::move(buffer).error());
    }
    assembly_ = std::move(*buffer);
  }
  const MutableByteSpan stored = assembly_.bytes().first(chunk.record.stored_size);
  std::copy(bytes.begin(), bytes.end(),
            stored.begin() + static_cast<std::ptrdiff_t>(position_ - chunk.record.offset));
  if (position_ + bytes.size() < chunk.end()) return;
  CheckCoded(chunk, stored);
  assembly_ = {};
}

// R-CHK-01, then R-COD-*, then R-CHK-02.
void UnitScan::CheckCoded(const WalkedChunk& chunk, ByteSpan stored) {
  const format::ChunkRecord& record = chunk.record;
  const Digest computed = ComputeDigest(stored);
  if (computed != record.stored_digest) {
    return ReportChunk(
        chunk, DigestError("R-CHK-01",
                           StrCat("chunk ", record.chunk, " (", stored.size(), " stored bytes)"),
                           computed, record.stored_digest));
  }
  // That the base cannot be read is one finding, and not one of each chunk.
  if (record.codec == Codec::kChanges && context_.base == nullptr) return;
  const Result<device::StagingBuffer> raw = worker_.pool->AcquireScratch(record.raw_size);
  if (!raw) return ReportChunk(chunk, raw.error());
  const MutableByteSpan bytes = raw->bytes().first(record.raw_size);
  Status status = Decode(chunk, stored, bytes);
  if (!status.ok()) {
    return ReportChunk(chunk, std::move(status).Prefixed(StrCat("chunk ", record.chunk)));
  }
  CheckRaw(chunk, ComputeDigest(bytes));
}

Status UnitScan::Decode(const WalkedChunk& chunk, ByteSpan stored, MutableByteSpan raw) {
  const std::uint32_t element_size = map_.ElementSizeOf(*chunk.shard);
  if (chunk.record.codec != Codec::kChanges) {
    return worker_.codec.Decode(chunk.record.codec, element_size, stored, raw);
  }
  SEALPOINT_RETURN_IF_ERROR(context_.base->ReadAsBase(
      map_.TensorOf(*chunk.shard), map_.ElementsOf(*chunk.shard, chunk.record.chunk),
      worker_.base_decoder, raw));
  return worker_.codec.ApplyChanges(element_size, stored, raw);
}

void UnitScan::CheckRaw(const WalkedChunk& chunk, const Digest& digest) {
  if (digest == chunk.record.raw_digest) return unit_.choice->NoteGood(good_from_, chunk);
  ReportChunk(chunk, DigestError("R-CHK-02",
                                 StrCat("chunk ", chunk.record.chunk, " (", chunk.record.raw_size,
                                        " bytes)"),
                                 digest, chunk.record.raw_digest));
}

}  // namespace

void ScanChunks(const BlobCheckInput& input, const ScanUnit& unit, Worker& worker,
                pipeline::ThreadPool& io) {
  Status status = UnitScan(input, unit, worker, io).Run();
  if (!input.context.meter.failure().ok()) return;  // no finding about the checkpoint
  const std::string name = format::BlobName(input.map.index().blob(unit.blob).id);
  input.context.findings.Add(BlobRank(unit.blob),
                             std::move(status).AtPath(input.context.PathOf(name)));
}

}  // namespace sealpoint::internal::verify
