// SPDX-License-Identifier: Apache-2.0
#include "tests/support/container/mini_container.h"

#include <algorithm>
#include <memory>

#include "lib/base/checked_math.h"
#include "lib/base/macros.h"
#include "lib/codec/chunk_codec.h"
#include "lib/fingerprint/part.h"
#include "lib/format/file_header.h"
#include "lib/metadata/merge_manifests.h"
#include "tests/support/container/encode_manifest.h"

namespace sealpoint::testing {
namespace {

namespace format = internal::format;

using format::ChunkRecord;
using internal::AlignUp;
using internal::metadata::BlobPin;
using internal::metadata::Metadata;

template <typename Hook, typename... Args>
void Call(const Hook& hook, Args&... args) {
  if (hook) hook(args...);
}

std::uint64_t AttributeFeature(const std::vector<MiniTensor>& tensors) {
  const bool has = std::ranges::any_of(
      tensors, [](const MiniTensor& tensor) { return !tensor.attributes.empty(); });
  return has ? format::kAttributeFeature : 0;
}

format::FeatureMasks FeaturesOf(const MiniSpec& spec) {
  return {.compat = (spec.has_fingerprints ? format::kFingerprintFeature : 0) |
                    AttributeFeature(spec.tensors),
          .incompat = spec.base ? format::kDeltaFeatures : 0};
}

// A blob under construction.
struct Draft {
  MiniBlob blob;
  Bytes bytes;  // header and chunk area
  std::uint32_t shard_count = 0;
  std::vector<ManifestTensor> tensors;
  std::vector<internal::metadata::ManifestObject> objects;
};

struct ChunkRule {
  std::uint64_t chunk_size = 0;
  std::uint32_t element_size = 1;
  Codec codec = Codec::kNone;
};

// Appends one chunk and its record.
void AppendChunk(Draft& draft, const ChunkRule& rule, std::uint32_t chunk, ByteSpan raw) {
  Bytes stored(raw.begin(), raw.end());
  Codec codec = rule.codec;
  if (codec != Codec::kNone) {
    internal::codec::ChunkCodec coder;
    Bytes coded(internal::codec::ChunkCodec::EncodedSizeBound(raw.size()));
    const std::size_t size = coder.Encode(codec, 1, rule.element_size, raw, coded).value();
    if (size < raw.size()) {
      coded.resize(size);
      stored = std::move(coded);
    } else {
      codec = Codec::kNone;
    }
  }
  draft.blob.records.push_back(
      {.offset = draft.bytes.size(),
       .stored_size = static_cast<std::uint32_t>(stored.size()),
       .raw_size = static_cast<std::uint32_t>(raw.size()),
       .shard = draft.shard_count,
       .chunk = chunk,
       .codec = codec,
       .raw_digest = ComputeDigest(raw),
       .stored_digest = codec == Codec::kNone ? Digest{} : ComputeDigest(stored)});
  draft.bytes.insert(draft.bytes.end(), stored.begin(), stored.end());
}

// Returns the number of the shard's first record.
std::uint32_t AppendShard(Draft& draft, const ChunkRule& rule, ByteSpan raw) {
  const auto first = static_cast<std::uint32_t>(draft.blob.records.size());
  draft.bytes.resize(AlignUp(draft.bytes.size(), format::ShardAlignment(raw.size())));
  std::uint32_t chunk = 0;
  for (std::uint64_t at = 0; at < raw.size(); at += rule.chunk_size) {
    AppendChunk(draft, rule, chunk++,
                raw.subspan(at, std::min<std::uint64_t>(rule.chunk_size, raw.size() - at)));
  }
  ++draft.shard_count;
  return first;
}

// Ascending with the numbers.
BlobId BlobIdOf(int number) {
  constexpr int kOfOneByteMax = 200;
  if (number < kOfOneByteMax)
    return MiniSpec::MakeId<BlobId>(static_cast<std::uint8_t>(number + 1));
  auto id = MiniSpec::MakeId<BlobId>(0xff);
  id.bytes[14] = static_cast<std::byte>(number >> 8);
  id.bytes[15] = static_cast<std::byte>(number);
  return id;
}

Draft& DraftOf(std::map<int, Draft>& drafts, int number) {
  const auto [found, is_new] = drafts.try_emplace(number);
  Draft& draft = found->second;
  if (is_new) {
    draft.blob.number = number;
    draft.blob.id = BlobIdOf(number);
    draft.blob.name = format::BlobName(draft.blob.id);
    draft.bytes.resize(format::kHeaderSize);
  }
  return draft;
}

void AppendTensor(const MiniSpec& spec, std::map<int, Draft>& drafts, const MiniTensor& tensor) {
  const std::uint32_t element_size =
      tensor.element_size != 0 ? tensor.element_size : DTypeSizeBytes(tensor.dtype);
  std::map<int, ManifestTensor> parts;
  const ChunkRule rule{tensor.chunk_size, element_size, tensor.codec};
  const ManifestTensor declaration{.name = tensor.name,
                                   .dtype = tensor.dtype,
                                   .element_size = element_size,
                                   .chunk_size = tensor.chunk_size,
                                   .shape = tensor.shape,
                                   .placement = tensor.placement,
                                   .shards = {},
                                   .attributes = tensor.attributes};
  for (const MiniShard& shard : tensor.shards) {
    SEALPOINT_CHECK(shard.bytes.size() == shard.region.element_count() * element_size);
    const std::uint32_t first = AppendShard(DraftOf(drafts, shard.blob), rule, shard.bytes);
    ManifestTensor& part = parts.try_emplace(shard.blob, declaration).first->second;
    part.shards.push_back({.region = shard.region, .first_record = first});
    part.fingerprint +=
        internal::fingerprint::Part(tensor.shape, element_size, shard.region).Of(0, shard.bytes);
  }
  if (tensor.shards.empty()) parts.try_emplace(0, declaration);
  for (auto& [number, part] : parts) {
    Call(spec.hooks.fingerprint, tensor.name, part.fingerprint);
    DraftOf(drafts, number).tensors.push_back(std::move(part));
  }
}

void AppendObject(std::map<int, Draft>& drafts, const MiniObject& object) {
  Draft& draft = DraftOf(drafts, object.blob);
  std::uint32_t first = 0;
  if (!object.bytes.empty()) {
    first = AppendShard(draft, {object.chunk_size, 1, object.codec}, object.bytes);
  }
  draft.objects.push_back({.name = object.name,
                           .media_type = object.media_type,
                           .size = object.bytes.size(),
                           .chunk_size = object.chunk_size,
                           .first_record = first});
}

Bytes EncodeRecords(const std::vector<ChunkRecord>& records) {
  Bytes bytes(records.size() * format::kRecordSize);
  for (std::size_t i = 0; i < records.size(); ++i) {
    format::EncodeRecord(
        records[i], MutableByteSpan(bytes).subspan(i * format::kRecordSize, format::kRecordSize));
  }
  return bytes;
}

Metadata DecodeGoodManifest(Bytes bytes, Metadata::ManifestCounts counts, bool has_fingerprints,
                            bool has_attributes) {
  const auto owner = std::make_shared<const Bytes>(std::move(bytes));
  return Metadata::DecodeManifest(owner, *owner, counts, {},
                                  {.fingerprints = has_fingerprints, .attributes = has_attributes})
      .value();
}

// The manifest after the hooks for what is stored.
Bytes EncodeStoredManifest(const MiniHooks& hooks, Draft& draft, bool has_fingerprints) {
  for (ManifestTensor& tensor : draft.tensors) {
    Call(hooks.stored_fingerprint, tensor.name, tensor.fingerprint);
  }
  Bytes manifest = EncodeManifest(draft.tensors, draft.objects, has_fingerprints);
  Call(hooks.manifest_bytes, draft.blob.number, manifest);
  return manifest;
}

void Place(Bytes& file, std::uint64_t offset, ByteSpan part) {
  if (file.size() < offset + part.size()) file.resize(offset + part.size());
  std::copy(part.begin(), part.end(), file.begin() + static_cast<std::ptrdiff_t>(offset));
}

struct FinishedBlob {
  BlobPin pin;
  Metadata manifest;
};

// Seals the draft into `file`.
FinishedBlob FinishBlob(const MiniSpec& spec, Draft& draft, Bytes& file) {
  const MiniHooks& hooks = spec.hooks;
  const int number = draft.blob.number;
  format::FileHeader header{.kind = format::FileKind::kBlob,
                            .features = FeaturesOf(spec),
                            .id = draft.blob.id,
                            .attempt = spec.attempt,
                            .step = spec.step};
  Call(hooks.blob_header, number, header);
  file = draft.bytes;
  format::EncodeHeader(header, MutableByteSpan(file).first(format::kHeaderSize));
  Call(hooks.chunk_area, number, file);
  draft.blob.chunks_end = file.size();

  std::uint64_t raw_bytes = 0;
  const Metadata::ManifestCounts good_counts{
      .record_count = static_cast<std::uint32_t>(draft.blob.records.size()),
      .shard_count = draft.shard_count};
  Call(hooks.records, number, draft.blob.records);
  for (const ChunkRecord& record : draft.blob.records) raw_bytes += record.raw_size;
  Bytes records = EncodeRecords(draft.blob.records);
  Call(hooks.record_bytes, number, records);
  Bytes group_list = format::EncodeGroupList(records);
  Call(hooks.group_list, number, group_list);
  const bool has_fingerprints =
      spec.has_fingerprints && (header.features.compat & format::kFingerprintFeature) != 0;
  Metadata good_manifest =
      DecodeGoodManifest(EncodeManifest(draft.tensors, draft.objects, has_fingerprints),
                         good_counts, has_fingerprints, AttributeFeature(spec.tensors) != 0);
  const Bytes manifest = EncodeStoredManifest(hooks, draft, has_fingerprints);

  const auto record_count = static_cast<std::uint32_t>(draft.blob.records.size());
  const format::BlobSections sections =
      format::ComputeSections(draft.blob.chunks_end, record_count, manifest.size()).value();
  draft.blob.sections = sections;
  format::Trailer trailer{.blob = draft.blob.id,
                          .file_size = sections.file_size,
                          .chunks_end = draft.blob.chunks_end,
                          .record_count = record_count,
                          .shard_count = draft.shard_count,
                          .manifest_size = manifest.size(),
                          .raw_bytes = raw_bytes,
                          .group_list_digest = ComputeDigest(group_list),
                          .manifest_digest = ComputeDigest(manifest),
                          .header_digest = format::StoredHeaderDigest(file)};
  Call(hooks.trailer, number, trailer);
  const format::TrailerBytes sealed = format::EncodeTrailer(trailer);
  Bytes trailer_bytes(sealed.begin(), sealed.end());
  Call(hooks.trailer_bytes, number, trailer_bytes);
  Place(file, sections.table, group_list);
  Place(file, sections.records, records);
  Place(file, sections.manifest, manifest);
  Place(file, sections.trailer, trailer_bytes);

  BlobPin pin{.id = draft.blob.id,
              .file_size = file.size(),
              .table_offset = sections.table,
              .record_count = record_count,
              .shard_count = draft.shard_count,
              .group_list_digest = ComputeDigest(group_list),
              .trailer_digest = format::StoredTrailerDigest(trailer_bytes)};
  Call(hooks.pin, number, pin);
  return {.pin = pin, .manifest = std::move(good_manifest)};
}

// The index file.
Bytes EncodeIndexFile(const MiniSpec& spec, const std::vector<FinishedBlob>& blobs) {
  std::vector<internal::metadata::BlobContribution> parts;
  for (const FinishedBlob& blob : blobs) parts.push_back({blob.pin, &blob.manifest});
  Bytes buffer = internal::metadata::EncodeIndex(parts,
                                                 {.created_unix_ns = spec.created_unix_ns,
                                                  .mesh = spec.mesh,
                                                  .provenance = spec.provenance,
                                                  .base = spec.base,
                                                  .attributes = spec.attributes},
                                                 {})
                     .value();
  Call(spec.hooks.index_bytes, buffer);
  format::FileHeader header{.kind = format::FileKind::kIndex,
                            .features = FeaturesOf(spec),
                            .id = spec.attempt,
                            .attempt = spec.attempt,
                            .step = spec.step};
  if (!spec.attributes.empty()) header.features.compat |= format::kAttributeFeature;
  Call(spec.hooks.index_header, header);
  Bytes file(format::kHeaderSize);
  format::EncodeHeader(header, file);
  file.insert(file.end(), buffer.begin(), buffer.end());
  return file;
}

}  // namespace

MiniContainer BuildMini(const MiniSpec& spec) {
  std::map<int, Draft> drafts;
  for (const MiniTensor& tensor : spec.tensors) AppendTensor(spec, drafts, tensor);
  for (const MiniObject& object : spec.objects) AppendObject(drafts, object);

  MiniContainer container{.attempt = spec.attempt,
                          .files = {},
                          .blobs = {},
                          .index_name = format::IndexName(spec.attempt)};
  std::vector<FinishedBlob> blobs;
  std::uint64_t total_bytes = 0;
  for (auto& [number, draft] : drafts) {
    Bytes& file = container.files[draft.blob.name];
    blobs.push_back(FinishBlob(spec, draft, file));
    total_bytes += file.size();
    container.blobs.emplace(number, std::move(draft.blob));
  }
  const Bytes& index = container.files[container.index_name] = EncodeIndexFile(spec, blobs);
  format::Marker marker{.kind = format::MarkerKind::kCommit,
                        .features = FeaturesOf(spec),
                        .attempt = spec.attempt,
                        .step = spec.step,
                        .parent = spec.parent,
                        .sequence = spec.sequence,
                        .index_size = index.size(),
                        .index_digest = ComputeDigest(index),
                        .blob_count = blobs.size(),
                        .total_bytes = total_bytes};
  if (!spec.attributes.empty()) marker.features.compat |= format::kAttributeFeature;
  Call(spec.hooks.marker, marker);
  const format::MarkerBytes bytes = format::EncodeMarker(marker);
  container.files["COMMIT"] = Bytes(bytes.begin(), bytes.end());
  return container;
}

Bytes VoidMarker(std::uint8_t attempt) {
  const auto marker = format::EncodeMarker(
      {.kind = format::MarkerKind::kVoid, .attempt = MiniSpec::MakeId(attempt)});
  return Bytes(marker.begin(), marker.end());
}

MiniContainer BuildInSeries(std::uint8_t attempt, std::uint8_t parent, std::uint64_t sequence) {
  MiniTensor tensor{.name = "w", .dtype = DType::kUInt8, .shape = {5}};
  tensor.shards.push_back({.region = Region::Whole(tensor.shape), .bytes = NoiseBytes(attempt, 5)});
  return BuildMini({.tensors = {tensor},
                    .attempt = MiniSpec::MakeId(attempt),
                    .parent = MiniSpec::MakeId(parent),
                    .sequence = sequence,
                    .step = 100u + sequence});
}

void StoreFiles(Storage& storage, const std::string& directory,
                const std::map<std::string, Bytes>& files) {
  SEALPOINT_CHECK(storage.CreateDirectories(directory).ok());
  for (const auto& [name, bytes] : files) ReplaceFile(storage, directory, name, &bytes);
}

void ReplaceFile(Storage& storage, const std::string& directory, const std::string& name,
                 const Bytes* bytes) {
  const auto folder = storage.OpenDirectory(directory).value();
  const Status removed = folder->Remove(name);
  SEALPOINT_CHECK(removed.ok() || removed.code() == Code::kNotFound);
  if (bytes == nullptr) return;
  const auto file = folder->CreateExclusive(name, {}).value();
  SEALPOINT_CHECK(file->WriteAt(0, *bytes).ok() && file->Close().ok());
}

Bytes ExtractRegion(const Bytes& tensor, const Shape& shape, std::uint32_t element_size,
                    const Region& region) {
  Bytes out(region.element_count() * element_size);
  const std::uint64_t row_elements = shape.empty() ? 1 : region.box.extent.back();
  std::byte* to = out.data();
  std::uint64_t element = region.run.begin;
  while (element < region.run.end) {
    std::uint64_t rest = element;
    std::uint64_t position = 0;
    std::uint64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      position += (region.box.offset[d] + rest % region.box.extent[d]) * stride;
      rest /= region.box.extent[d];
      stride *= shape[d];
    }
    const std::uint64_t row_rest =
        std::min(row_elements - element % row_elements, region.run.end - element);
    to = std::copy_n(tensor.data() + position * element_size, row_rest * element_size, to);
    element += row_rest;
  }
  return out;
}

MiniTensor CutTensor(std::string name, DType dtype, const Shape& shape, const Bytes& bytes,
                     const std::vector<Region>& regions, const std::vector<int>& blobs) {
  MiniTensor tensor{.name = std::move(name), .dtype = dtype, .shape = shape};
  for (std::size_t i = 0; i < regions.size(); ++i) {
    tensor.shards.push_back(
        {.region = regions[i],
         .bytes = ExtractRegion(bytes, shape, DTypeSizeBytes(dtype), regions[i]),
         .blob = blobs.empty() ? 0 : blobs[i]});
  }
  return tensor;
}

}  // namespace sealpoint::testing
