// SPDX-License-Identifier: Apache-2.0
#include "tests/support/damage/areas.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/endian.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "sealpoint/digest.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using format::HeaderFields;
using format::kDigestSize;
using format::kHeaderSize;
using format::kRecordSize;
using format::kRecordsPerGroup;
using format::kTrailerSize;
using format::RecordFields;
using format::TrailerFields;
using internal::LoadLe;

struct Sections {
  std::uint64_t chunks_end = 0;
  std::uint64_t table = 0;
  std::uint32_t record_count = 0;
  std::uint64_t records = 0;
  std::uint64_t manifest = 0;
  std::uint64_t manifest_size = 0;
};

Sections ReadTrailer(const Bytes& blob) {
  const ByteSpan trailer = ByteSpan(blob).last(kTrailerSize);
  return {.chunks_end = LoadLe<std::uint64_t>(trailer, TrailerFields::kChunksEnd.at),
          .table = LoadLe<std::uint64_t>(trailer, TrailerFields::kTable.at),
          .record_count = LoadLe<std::uint32_t>(trailer, TrailerFields::kRecordCount.at),
          .records = LoadLe<std::uint64_t>(trailer, TrailerFields::kRecords.at),
          .manifest = LoadLe<std::uint64_t>(trailer, TrailerFields::kManifest.at),
          .manifest_size = LoadLe<std::uint64_t>(trailer, TrailerFields::kManifestSize.at)};
}

class AreaList {
 public:
  // Everything up to `end` that was not added yet.
  BlobArea& Until(std::uint64_t end, AreaKind kind) {
    SEALPOINT_CHECK(end >= end_);
    areas_.push_back({.kind = kind, .begin = end_, .end = end});
    end_ = end;
    return areas_.back();
  }
  std::vector<BlobArea> Finish() {
    std::erase_if(areas_, [](const BlobArea& area) { return area.begin == area.end; });
    return std::move(areas_);
  }

 private:
  std::vector<BlobArea> areas_;
  std::uint64_t end_ = 0;
};

void AddChunks(const Bytes& blob, const Sections& trailer, AreaList& areas) {
  for (std::uint32_t r = 0; r < trailer.record_count; ++r) {
    const std::uint64_t at = trailer.records + r * kRecordSize;
    const auto offset = LoadLe<std::uint64_t>(blob, at + RecordFields::kOffset.at);
    const bool is_coded = LoadLe<std::uint16_t>(blob, at + RecordFields::kCodec.at) != 0;
    BlobArea& padding = areas.Until(offset, AreaKind::kChunkPadding);
    padding.record = r;
    padding.group = r / kRecordsPerGroup;
    BlobArea& chunk =
        areas.Until(offset + LoadLe<std::uint32_t>(blob, at + RecordFields::kStoredSize.at),
                    is_coded ? AreaKind::kCodedChunk : AreaKind::kPlainChunk);
    chunk.record = r;
    chunk.group = r / kRecordsPerGroup;
  }
}

constexpr std::array<std::uint8_t, 8> kHeaderMagic = {0x89, 'S', 'P', 'T', 0x0d, 0x0a, 0x1a, 0x0a};

bool BeginsWith(ByteSpan bytes, const std::array<std::uint8_t, 8>& magic) {
  return std::equal(magic.begin(), magic.end(), bytes.begin(),
                    [](std::uint8_t a, std::byte b) { return std::byte{a} == b; });
}

bool HasDigest(ByteSpan bytes, std::uint64_t at, const Digest& digest) {
  return std::equal(digest.bytes.begin(), digest.bytes.end(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(at));
}

bool IsZero(ByteSpan bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// The chunks of one shard.
void AddOwners(std::vector<ChunkOf>& chunks, const ChunkOf& shard, std::uint64_t elements,
               std::uint64_t elements_per_chunk) {
  for (std::uint64_t begin = 0; begin < elements; begin += elements_per_chunk) {
    ChunkOf chunk = shard;
    const std::uint64_t shard_begin = shard.elements.run.begin;
    chunk.elements.run = {shard_begin + begin,
                          shard_begin + std::min(elements, begin + elements_per_chunk)};
    chunks.push_back(std::move(chunk));
  }
}

}  // namespace

std::vector<BlobArea> FindBlobAreas(const Bytes& blob) {
  const Sections trailer = ReadTrailer(blob);
  AreaList areas;
  areas.Until(kHeaderSize, AreaKind::kHeader);
  AddChunks(blob, trailer, areas);
  SEALPOINT_CHECK(areas.Until(trailer.chunks_end, AreaKind::kAreaPadding).begin ==
                  trailer.chunks_end);
  areas.Until(trailer.table, AreaKind::kAreaPadding);
  const std::uint32_t groups = (trailer.record_count + kRecordsPerGroup - 1) / kRecordsPerGroup;
  areas.Until(trailer.table + groups * kDigestSize, AreaKind::kGroupList);
  areas.Until(trailer.records, AreaKind::kGroupListPadding);
  for (std::uint32_t group = 0; group < groups; ++group) {
    const std::uint32_t end = std::min(trailer.record_count, (group + 1) * kRecordsPerGroup);
    areas.Until(trailer.records + end * kRecordSize, AreaKind::kGroup).group = group;
  }
  // Records have 64 bytes, so that no padding lies behind them.
  SEALPOINT_CHECK(trailer.manifest == trailer.records + trailer.record_count * kRecordSize);
  areas.Until(trailer.manifest + trailer.manifest_size, AreaKind::kManifest);
  areas.Until(blob.size() - kTrailerSize, AreaKind::kManifestPadding);
  areas.Until(blob.size(), AreaKind::kTrailer);
  return areas.Finish();
}

std::map<std::string, std::vector<ChunkOf>> FindChunkOwners(const DamageCase& one) {
  std::map<std::string, std::vector<ChunkOf>> owners;
  const auto chunks_of = [&](int blob) -> std::vector<ChunkOf>& {
    return owners[one.container.blobs.at(blob).name];
  };
  for (const MiniTensor& tensor : one.spec.tensors) {
    const std::uint64_t size =
        tensor.element_size != 0 ? tensor.element_size : DTypeSizeBytes(tensor.dtype);
    for (const MiniShard& shard : tensor.shards) {
      AddOwners(chunks_of(shard.blob), {.owner = tensor.name, .elements = shard.region},
                shard.region.element_count(), tensor.chunk_size / size);
    }
  }
  for (const MiniObject& object : one.spec.objects) {
    AddOwners(chunks_of(object.blob), {.owner = object.name, .is_object = true},
              object.bytes.size(), object.chunk_size);
  }
  return owners;
}

std::optional<std::string_view> FindHeaderFault(ByteSpan file, std::uint32_t kind) {
  constexpr std::size_t kPrefixSize = format::kFrozenPrefixSize;
  constexpr std::size_t kDigestAt = HeaderFields::kDigest.at;
  if (file.size() < kPrefixSize) return "R-HDR-01";
  if (!BeginsWith(file, kHeaderMagic)) return kind == 3 ? "R-HDR-02" : "R-HDR-10";
  const auto length = LoadLe<std::uint32_t>(file, HeaderFields::kHeaderSize.at);
  if (length % 8 != 0 || length < kPrefixSize || length > format::kHeaderSizeMax) return "R-HDR-03";
  if (file.size() < length) return "R-HDR-01";
  Bytes header(file.begin(), file.begin() + length);
  std::fill_n(header.begin() + kDigestAt, kDigestSize, std::byte{0});
  if (!HasDigest(file, kDigestAt, ComputeDigest(header))) return "R-HDR-04";
  const auto stated_kind = LoadLe<std::uint32_t>(file, HeaderFields::kKind.at);
  const bool is_known =
      LoadLe<std::uint32_t>(file, HeaderFields::kVersion.at) == format::kFormatVersion &&
      stated_kind >= 1 && stated_kind <= 3 &&
      LoadLe<std::uint64_t>(file, HeaderFields::kIncompat.at) == 0;
  if (!is_known) return "R-HDR-05";
  if (stated_kind != kind) return "R-HDR-07";
  if (length != (kind == 3 ? format::kMarkerSize : kHeaderSize)) return "R-HDR-05";
  for (const format::Field& reserved : {HeaderFields::kReserved, HeaderFields::kTailReserved}) {
    if (!IsZero(file.subspan(reserved.at, reserved.size))) return "R-HDR-06";
  }
  return std::nullopt;
}

}  // namespace sealpoint::testing
