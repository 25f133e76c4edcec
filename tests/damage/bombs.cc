// SPDX-License-Identifier: Apache-2.0
#include "tests/damage/bombs.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "lib/base/endian.h"
#include "lib/format/constants.h"
#include "lib/format/fields.h"
#include "lib/format/file_header.h"
#include "lib/format/marker.h"
#include "sealpoint/digest.h"
#include "tests/conformance/corpus_damage.h"
#include "tests/support/container/format_surgery.h"
#include "tests/support/container/hostile_index.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using format::ChunkRecord;

constexpr std::uint32_t kRecordCountMax = std::uint32_t{1} << 28;
constexpr std::uint64_t kBlobSizeMax = std::uint64_t{1} << 50;
constexpr std::uint32_t kBoxListShardCountMax = std::uint32_t{1} << 16;

// A directory with marker and index but without the blobs.
DamagedFiles PinIndex(const Bytes& buffer, const std::vector<HostileBlob>& blobs) {
  const AttemptId attempt = MiniSpec::MakeId(0xa7);
  Bytes index(format::kHeaderSize);
  format::EncodeHeader(
      {.kind = format::FileKind::kIndex, .id = attempt, .attempt = attempt, .step = 7}, index);
  index.insert(index.end(), buffer.begin(), buffer.end());
  format::Marker marker{.kind = format::MarkerKind::kCommit,
                        .attempt = attempt,
                        .step = 7,
                        .sequence = 1,
                        .index_size = index.size(),
                        .index_digest = ComputeDigest(index),
                        .blob_count = blobs.size()};
  for (const HostileBlob& blob : blobs) marker.total_bytes += blob.file_size;
  const format::MarkerBytes bytes = format::EncodeMarker(marker);
  DamagedFiles files;
  files["COMMIT"].bytes.assign(bytes.begin(), bytes.end());
  files[format::IndexName(attempt)].bytes = std::move(index);
  return files;
}
DamagedFiles PinIndex(const HostileMetadata& metadata) {
  return PinIndex(EncodeHostileIndex(metadata), metadata.blobs);
}

// One blob that claims the most.
HostileBlob HugeBlob(std::uint32_t record_count, std::uint32_t shard_count) {
  return {.id = 1,
          .file_size = kBlobSizeMax,
          .table_offset = kBlobSizeMax / 2,
          .record_count = record_count,
          .shard_count = shard_count};
}

DamagedFiles IndexLength(std::uint64_t length) {
  DamagedFiles files = AsDamagedFiles(BuildMini(BaseSpec()).files);
  Bytes& marker = files.at("COMMIT").bytes;
  internal::StoreLe<std::uint64_t>(marker, format::MarkerFields::kIndexSize.at, length);
  ResealMarker(marker);
  return files;
}

DamagedFiles RecordsAtTheLimit() {
  HostileMetadata metadata;
  metadata.tensors.push_back({.name = "t",
                              .shape = {std::uint64_t{kRecordCountMax} * 1024},
                              .grid = HostileGrid{.cuts = {}, .cut_counts = {0}},
                              .shards = {{0, 0}}});
  metadata.blobs.push_back(HugeBlob(kRecordCountMax, 1));
  metadata.raw_bytes = std::uint64_t{kRecordCountMax} * 4096;
  return PinIndex(metadata);
}

// An object of 2^40 bytes of which nothing is there.
DamagedFiles ObjectThatIsNotThere(bool with_a_short_blob) {
  HostileMetadata metadata;
  metadata.objects.push_back({.name = "o", .size = std::uint64_t{kRecordCountMax} * 4096});
  metadata.blobs.push_back(HugeBlob(kRecordCountMax, 1));
  metadata.raw_bytes = metadata.objects[0].size;
  DamagedFiles files = PinIndex(metadata);
  if (with_a_short_blob) {
    BlobId id;
    id.bytes[0] = std::byte{1};
    files[format::BlobName(id)].bytes.resize(4096);
  }
  return files;
}

// One box per row of the first dimension, which is a grid; if it is not to be valid, the last row
// twice. With runs, the box of each row occurs twice, cut at another element than in the row
// before.
DamagedFiles BoxListAtTheLimits(std::size_t dimension_count, bool with_runs, bool is_valid) {
  HostileBoxes boxes;
  if (with_runs) boxes.runs.emplace();
  const std::uint32_t shards = kBoxListShardCountMax;
  const std::uint64_t rows = with_runs ? shards / 2 : shards;
  const std::uint64_t inner = with_runs ? 2 : 1;
  std::vector<std::uint64_t> shape(dimension_count, 1);
  shape[0] = rows;
  for (std::size_t d = 1; d < std::min<std::size_t>(dimension_count, 20); ++d) shape[d] = inner;
  std::uint64_t row_elements = 1;
  for (std::size_t d = 1; d < dimension_count; ++d) row_elements *= shape[d];
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t part = 0; part < shards / rows; ++part) {
      boxes.boxes.push_back(row);
      boxes.boxes.insert(boxes.boxes.end(), dimension_count - 1, 0);
      boxes.boxes.push_back(1);
      boxes.boxes.insert(boxes.boxes.end(), shape.begin() + 1, shape.end());
      if (!with_runs) continue;
      // Another cut in each row, so that many small boxes are needed.
      const std::uint64_t cut = 1 + row % (row_elements - 1);
      boxes.runs->push_back(part == 0 ? 0 : cut);
      boxes.runs->push_back(part == 0 ? cut : row_elements);
    }
  }
  if (!is_valid) boxes.boxes[boxes.boxes.size() - 2 * dimension_count] -= 1;  // the last row twice
  HostileMetadata metadata;
  HostileTensor tensor{.name = "t", .shape = shape, .boxes = std::move(boxes)};
  for (std::uint32_t i = 0; i < shards; ++i) tensor.shards.push_back({0, i});
  metadata.tensors.push_back(std::move(tensor));
  // So many records that the bits for them count too.
  metadata.blobs.push_back(HugeBlob(kRecordCountMax, shards));
  return PinIndex(metadata);
}

// Each row is cut in two, at another column than the row before: no grid, and two divided
// dimensions. The others have one element.
DamagedFiles BricksAtTheLimits(std::size_t dimension_count) {
  constexpr std::uint64_t kColumns = 64;
  const std::uint64_t rows = kBoxListShardCountMax / 2;
  std::vector<std::uint64_t> shape(dimension_count, 1);
  shape[0] = rows;
  shape[1] = kColumns;
  HostileBoxes boxes;
  const auto add = [&](std::uint64_t row, std::uint64_t column, std::uint64_t extent) {
    boxes.boxes.push_back(row);
    boxes.boxes.push_back(column);
    boxes.boxes.insert(boxes.boxes.end(), dimension_count - 2, 0);
    boxes.boxes.push_back(1);
    boxes.boxes.push_back(extent);
    boxes.boxes.insert(boxes.boxes.end(), dimension_count - 2, 1);
  };
  for (std::uint64_t row = 0; row < rows; ++row) {
    const std::uint64_t cut = 1 + row % (kColumns - 1);
    add(row, 0, cut);
    add(row, cut, kColumns - cut);
  }
  HostileMetadata metadata;
  HostileTensor tensor{.name = "t", .shape = shape, .boxes = std::move(boxes)};
  for (std::uint32_t i = 0; i < kBoxListShardCountMax; ++i) tensor.shards.push_back({0, i});
  metadata.tensors.push_back(std::move(tensor));
  metadata.blobs.push_back(HugeBlob(kRecordCountMax, kBoxListShardCountMax));
  return PinIndex(metadata);
}

// A valid grid of a million shards whose blob is not there.
DamagedFiles GridWithoutItsBlob() {
  constexpr std::uint32_t kShards = 1 << 20;
  HostileGrid grid{.cuts = {}, .cut_counts = {kShards - 1}};
  for (std::uint64_t i = 1; i < kShards; ++i) grid.cuts.push_back(i);
  HostileTensor tensor{.name = "t", .shape = {kShards}, .grid = std::move(grid)};
  for (std::uint32_t i = 0; i < kShards; ++i) tensor.shards.push_back({0, i});
  HostileMetadata metadata;
  metadata.tensors.push_back(std::move(tensor));
  metadata.blobs.push_back(HugeBlob(kShards, kShards));
  metadata.raw_bytes = std::uint64_t{kShards} * 4;
  return PinIndex(metadata);
}

// The length of the vector of blobs, or whatever lies there, becomes huge.
DamagedFiles VectorsThatClaimBillions() {
  HostileMetadata metadata;
  metadata.blobs.push_back({.id = 1});
  Bytes buffer = EncodeHostileIndex(metadata);
  for (std::size_t at = 4; at + 4 <= buffer.size(); at += 4) {
    if (internal::LoadLe<std::uint32_t>(buffer, at) == 1) {
      internal::StoreLe<std::uint32_t>(buffer, at, 0xffffffff);
    }
  }
  return PinIndex(buffer, metadata.blobs);
}

DamagedFiles LongTexts() {
  HostileMetadata metadata;
  for (int i = 0; i < 500; ++i) {
    const std::string key = std::to_string(1000 + i) + std::string(1000, 'k');
    metadata.provenance.emplace_back(key, std::string(64 * 1024, 'v'));
    metadata.tensors.push_back({.name = key,
                                .shape = {0},
                                .placement = std::vector<std::string>(32, std::string(1024, 'p'))});
  }
  return PinIndex(metadata);
}

// A frame of single bytes that stand for up to 128 KiB each.
Bytes FrameOfRuns(std::uint64_t size) {
  constexpr std::uint64_t kBlockMax = 128 * kKiB;
  Bytes frame(9);
  internal::StoreLe<std::uint32_t>(frame, 0, 0xfd2fb528);
  frame[4] = std::byte{0xa0};  // a content size of 4 bytes, a single segment
  internal::StoreLe<std::uint32_t>(frame, 5, static_cast<std::uint32_t>(size));
  for (std::uint64_t rest = size; rest > 0;) {
    const std::uint64_t block = std::min(rest, kBlockMax);
    rest -= block;
    const std::uint64_t header = block << 3 | 1 << 1 | (rest == 0 ? 1 : 0);
    for (int i = 0; i < 3; ++i) frame.push_back(static_cast<std::byte>(header >> (8 * i)));
    frame.push_back(std::byte{'x'});
  }
  return frame;
}

// `chunk_count` coded chunks, each of `raw_size` times 'x', in a tensor or an object.
DamagedFiles CodedBomb(Codec codec, std::uint64_t raw_size, std::uint64_t chunk_count,
                       bool is_object) {
  const std::uint64_t size = raw_size * chunk_count;
  MiniSpec spec;
  const Bytes raw(size, std::byte{'x'});
  if (is_object) {
    spec.objects = {{.name = "bomb", .bytes = raw, .chunk_size = raw_size}};
  } else {
    const Shape shape = {size / 4};
    spec.tensors = {{.name = "bomb",
                     .dtype = DType::kF32,
                     .shape = shape,
                     .chunk_size = raw_size,
                     .shards = {{.region = Region::Whole(shape), .bytes = raw}}}};
  }
  const Bytes frame = FrameOfRuns(raw_size);
  const std::uint64_t begin = format::ShardAlignment(size) == 4096 ? 4096 : 128;
  spec.hooks.chunk_area = [=](int, Bytes& area) {
    area.resize(begin);
    for (std::uint64_t i = 0; i < chunk_count; ++i) {
      area.insert(area.end(), frame.begin(), frame.end());
    }
  };
  spec.hooks.records = [=](int, std::vector<ChunkRecord>& records) {
    for (std::size_t i = 0; i < records.size(); ++i) {
      records[i].offset = begin + i * frame.size();
      records[i].stored_size = static_cast<std::uint32_t>(frame.size());
      records[i].codec = codec;
      records[i].stored_digest = ComputeDigest(frame);
    }
  };
  return AsDamagedFiles(BuildMini(spec).files);
}

// A trailer that is right in itself and claims a manifest of 2^62 bytes.
DamagedFiles ManifestLength(std::uint64_t length) {
  DamagedFiles files = AsDamagedFiles(BuildMini(OneRankSpec()).files);
  for (auto& [name, entry] : files) {
    if (!name.ends_with(".blob")) continue;
    const MutableByteSpan trailer = MutableByteSpan(entry.bytes).last(format::kTrailerSize);
    internal::StoreLe<std::uint64_t>(trailer, format::TrailerFields::kManifestSize.at, length);
    ResealTrailer(trailer);
  }
  return files;
}

// A blob whose manifest is most of it.
DamagedFiles LongManifest() {
  MiniSpec spec;
  for (int i = 0; i < 700; ++i) {
    const std::string name = std::to_string(1000 + i);
    MiniTensor tensor{.name = name, .dtype = DType::kF32, .shape = {0}};
    for (int p = 0; p < 32; ++p)
      tensor.placement.push_back(std::to_string(p) + name + std::string(1000, 'p'));
    spec.tensors.push_back(std::move(tensor));
  }
  return AsDamagedFiles(BuildMini(spec).files);
}

}  // namespace

std::vector<std::pair<std::string, std::function<DamagedFiles()>>> Bombs() {
  constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
  return {
      {"index of 2^32-1 bytes", [] { return IndexLength(kMax32); }},
      {"index of 2^30 bytes", [] { return IndexLength(std::uint64_t{1} << 30); }},
      {"2^28 records", RecordsAtTheLimit},
      {"object of 2^40 bytes, no blob", [] { return ObjectThatIsNotThere(false); }},
      {"object of 2^40 bytes, short blob", [] { return ObjectThatIsNotThere(true); }},
      {"box list of 32 dimensions that is a grid",
       [] { return BoxListAtTheLimits(32, false, true); }},
      {"box list of 32 dimensions", [] { return BoxListAtTheLimits(32, false, false); }},
      {"box list of 32 dimensions with runs", [] { return BoxListAtTheLimits(32, true, true); }},
      {"bad box list of 32 dimensions with runs",
       [] { return BoxListAtTheLimits(32, true, false); }},
      {"box list of 3 dimensions with runs", [] { return BoxListAtTheLimits(3, true, false); }},
      {"bricks of 2 dimensions", [] { return BricksAtTheLimits(2); }},
      {"bricks of 32 dimensions", [] { return BricksAtTheLimits(32); }},
      {"grid of 2^20 shards without its blob", GridWithoutItsBlob},
      {"vectors of 2^32-1 entries", VectorsThatClaimBillions},
      {"long texts", LongTexts},
      {"manifest of 2^62 bytes", [] { return ManifestLength(std::uint64_t{1} << 62); }},
      {"manifest of 2^30 bytes", [] { return ManifestLength(std::uint64_t{1} << 30); }},
      {"manifest of 23 MB", LongManifest},
      {"zstd chunk of 128 MiB", [] { return CodedBomb(Codec::kZstd, 128 * kMiB, 1, false); }},
      {"split chunk of 128 MiB",
       [] { return CodedBomb(Codec::kByteSplitZstd, 128 * kMiB, 1, false); }},
      {"split chunks of 16 MiB",
       [] { return CodedBomb(Codec::kByteSplitZstd, 16 * kMiB, 4, false); }},
      {"object of 128 MiB in chunks of 16 MiB",
       [] { return CodedBomb(Codec::kZstd, 16 * kMiB, 8, true); }},
  };
}

}  // namespace sealpoint::testing
