// SPDX-License-Identifier: Apache-2.0
#include "tests/scale/hollow_blob.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/format/chunk_table.h"
#include "lib/format/file_header.h"
#include "lib/format/trailer.h"
#include "lib/writer/blob_summary_parts.h"
#include "lib/writer/declaration_summary.h"
#include "lib/writer/tensor_checks.h"
#include "tests/support/container/encode_manifest.h"
#include "tests/support/storage/forwarding_storage.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using format::kHeaderSize;
using format::kRecordSize;
using internal::AlignUp;
using internal::DivideRoundUp;

// The chunk records of these shards as BlobLayout lays them out, and where the chunks end.
struct EncodedRecords {
  Bytes records{};
  std::uint64_t chunks_end = kHeaderSize;
};

EncodedRecords EncodeRecords(const std::vector<HollowBlob::Shard>& shards) {
  EncodedRecords encoded;
  std::uint32_t ordinal = 0;
  for (const HollowBlob::Shard& shard : shards) {
    std::uint64_t at = AlignUp(encoded.chunks_end, format::ShardAlignment(shard.raw_size));
    for (std::uint64_t done = 0; done < shard.raw_size; done += shard.chunk_size) {
      const auto size =
          static_cast<std::uint32_t>(std::min(shard.chunk_size, shard.raw_size - done));
      encoded.records.resize(encoded.records.size() + kRecordSize);
      format::EncodeRecord({.offset = at,
                            .stored_size = size,
                            .raw_size = size,
                            .shard = ordinal,
                            .chunk = static_cast<std::uint32_t>(done / shard.chunk_size)},
                           MutableByteSpan(encoded.records).last(kRecordSize));
      at += size;
    }
    encoded.chunks_end = at;
    ++ordinal;
  }
  return encoded;
}

BlobId IdOf(int rank, std::uint64_t number) {
  std::array<std::byte, 16> seed{};
  internal::StoreLe(seed, 0, static_cast<std::uint64_t>(rank));
  internal::StoreLe(seed, 8, number);
  return ComputeDigest(seed);
}

// Collects what one blob holds and closes it.
class HollowWriter {
 public:
  void Add(const TensorSpec& tensor, const Region& region) {
    const std::uint32_t element_size = internal::writer::ElementSize(tensor);
    const std::uint64_t raw = region.element_count() * element_size;
    if (tensors_.empty() || tensors_.back().name != tensor.name) {
      tensors_.push_back({.name = tensor.name,
                          .dtype = tensor.dtype,
                          .element_size = element_size,
                          .chunk_size = tensor.chunk_size_bytes,
                          .shape = tensor.shape,
                          .placement = tensor.placement,
                          .shards = {}});
    }
    tensors_.back().shards.push_back({.region = region, .first_record = record_count_});
    blob_.shards.push_back({.raw_size = raw, .chunk_size = tensor.chunk_size_bytes});
    record_count_ += static_cast<std::uint32_t>(DivideRoundUp(raw, tensor.chunk_size_bytes));
    raw_bytes_ += raw;
  }

  HollowBlob Finish(const BlobId& id, const AttemptId& attempt) {
    const EncodedRecords encoded = EncodeRecords(blob_.shards);
    const Bytes manifest = EncodeManifest(std::move(tensors_), {});
    Bytes header(kHeaderSize);
    format::EncodeHeader({.kind = format::FileKind::kBlob, .id = id, .attempt = attempt}, header);
    format::Trailer trailer{
        .blob = id,
        .chunks_end = encoded.chunks_end,
        .record_count = record_count_,
        .shard_count = static_cast<std::uint32_t>(blob_.shards.size()),
        .manifest_size = manifest.size(),
        .raw_bytes = raw_bytes_,
        .group_list_digest = ComputeDigest(format::EncodeGroupList(encoded.records)),
        .manifest_digest = ComputeDigest(manifest),
        .header_digest = format::StoredHeaderDigest(header)};
    trailer.file_size = format::ComputeSections(encoded.chunks_end, record_count_, manifest.size())
                            .value()
                            .file_size;
    blob_.summary = BlobSummary::Deserialize(internal::writer::JoinSummaryParts(
                                                 header, format::EncodeTrailer(trailer), manifest))
                        .value();
    return std::move(blob_);
  }

 private:
  HollowBlob blob_;
  std::vector<ManifestTensor> tensors_;
  std::uint32_t record_count_ = 0;
  std::uint64_t raw_bytes_ = 0;
};

class HollowReader final : public ReadableFile {
 public:
  explicit HollowReader(const HollowStorage::Table& table) : table_(table) {}

  std::uint64_t size_bytes() const override { return table_.file_size; }
  bool is_direct() const override { return false; }
  Status ReadAt(std::uint64_t offset, MutableByteSpan out) const override {
    const Bytes records = EncodeRecords(table_.shards).records;
    Bytes table = format::EncodeGroupList(records);
    table.resize(AlignUp(table.size(), format::kSectionAlignment));
    table.insert(table.end(), records.begin(), records.end());
    const std::uint64_t skipped = offset - table_.offset;
    if (offset < table_.offset || !internal::RangeFits(skipped, out.size(), table.size())) {
      return internal::MakeError(Code::kIo, "a hollow blob has no byte ", offset);
    }
    std::copy_n(table.begin() + static_cast<std::ptrdiff_t>(skipped), out.size(), out.begin());
    return Status();
  }

 private:
  const HollowStorage::Table& table_;
};

class HollowDirectory final : public ForwardingDirectory {
 public:
  HollowDirectory(std::unique_ptr<Directory> inner,
                  std::shared_ptr<const HollowStorage::Tables> tables)
      : ForwardingDirectory(std::move(inner)), tables_(std::move(tables)) {}

  Result<EntryInfo> Stat(std::string_view name) const override {
    const auto found = tables_->find(name);
    if (found == tables_->end()) return ForwardingDirectory::Stat(name);
    return EntryInfo{
        .name = found->first, .kind = EntryKind::kFile, .size_bytes = found->second.file_size};
  }
  Result<std::unique_ptr<ReadableFile>> OpenForRead(std::string_view name,
                                                    IoMode mode) const override {
    const auto found = tables_->find(name);
    if (found == tables_->end()) return ForwardingDirectory::OpenForRead(name, mode);
    return std::unique_ptr<ReadableFile>(std::make_unique<HollowReader>(found->second));
  }

 private:
  const std::shared_ptr<const HollowStorage::Tables> tables_;
};

}  // namespace

std::vector<HollowBlob> MakeHollowBlobs(const Declaration& declaration,
                                        const internal::saver::SavePlan& plan, int rank,
                                        const AttemptId& attempt) {
  std::vector<HollowBlob> blobs;
  for (std::size_t i = 0; i < plan.shards.size();) {
    const std::string group = declaration.tensors()[plan.shards[i].slot].tensor.group;
    HollowWriter writer;
    for (; i < plan.shards.size(); ++i) {
      const DeclaredTensor& held = declaration.tensors()[plan.shards[i].slot];
      if (held.tensor.group != group) break;
      Region region = internal::writer::HeldRegionOf(held);
      region.run = plan.shards[i].run;
      writer.Add(held.tensor, region);
    }
    blobs.push_back(writer.Finish(IdOf(rank, blobs.size()), attempt));
  }
  return blobs;
}

HollowStorage::HollowStorage() : files_(MemoryStorage()), tables_(std::make_shared<Tables>()) {}

HollowStorage::~HollowStorage() = default;

void HollowStorage::Add(const HollowBlob& blob) {
  const internal::metadata::BlobPin& pin = InternalAccess::DecodedOf(blob.summary)->pin;
  (*tables_)[format::BlobName(pin.id)] = {
      .file_size = pin.file_size, .offset = pin.table_offset, .shards = blob.shards};
}

Result<std::unique_ptr<Directory>> HollowStorage::OpenDirectory(std::string_view path) const {
  auto opened = files_->OpenDirectory(path);
  if (!opened.ok()) return std::move(opened).error();
  return std::unique_ptr<Directory>(
      std::make_unique<HollowDirectory>(std::move(opened).value(), tables_));
}

Status HollowStorage::CreateDirectories(std::string_view path) {
  return files_->CreateDirectories(path);
}

}  // namespace sealpoint::testing
