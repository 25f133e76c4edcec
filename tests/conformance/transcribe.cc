// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/transcribe.h"

#include <array>
#include <bit>
#include <cstring>

namespace sealpoint::testing {
namespace {

template <typename T>
std::vector<T> Numbers(const flatbuffers::Vector<T>* vector) {
  return std::vector<T>(vector->begin(), vector->end());
}
template <typename T>
std::optional<std::vector<T>> OptionalNumbers(const flatbuffers::Vector<T>* vector) {
  if (vector == nullptr) return std::nullopt;
  return Numbers(vector);
}

std::optional<std::string> TextOf(const flatbuffers::Vector<std::uint8_t>* bytes) {
  if (bytes == nullptr) return std::nullopt;
  return std::string(bytes->begin(), bytes->end());
}

HostileTensor Transcribe(const fb::Tensor& from) {
  HostileTensor tensor{.name = from.name()->str(),
                       .shape = Numbers(from.shape()),
                       .dtype = from.dtype(),
                       .element_size = from.element_size(),
                       .chunk_size_log2 = from.chunk_size_log2()};
  if (const fb::Grid* grid = from.grid()) {
    tensor.grid = HostileGrid{.cuts = Numbers(grid->cuts()),
                              .cut_counts = Numbers(grid->cut_counts()),
                              .run_cut_counts = OptionalNumbers(grid->run_cut_counts()),
                              .run_cuts = OptionalNumbers(grid->run_cuts())};
  }
  if (const fb::BoxList* boxes = from.boxes()) {
    tensor.boxes =
        HostileBoxes{.boxes = Numbers(boxes->boxes()), .runs = OptionalNumbers(boxes->runs())};
  }
  for (const fb::ShardRef* ref : *from.shards()) {
    tensor.shards.push_back({ref->blob(), ref->first_record()});
  }
  if (from.placement() != nullptr) {
    for (const auto* text : *from.placement()) tensor.placement.push_back(text->str());
  }
  if (from.fingerprint() != nullptr) {
    tensor.fingerprint = std::bit_cast<std::array<std::uint64_t, 2>>(*from.fingerprint());
  }
  tensor.attributes = TextOf(from.attributes());
  return tensor;
}

// Tensors and objects, which index and manifest have alike.
template <typename Root>
HostileMetadata TranscribeRoot(const Root& root) {
  HostileMetadata metadata;
  for (const fb::Tensor* tensor : *root.tensors()) metadata.tensors.push_back(Transcribe(*tensor));
  for (const fb::Object* object : *root.objects()) {
    metadata.objects.push_back({.name = object->name()->str(),
                                .media_type = object->media_type()->str(),
                                .size = object->size(),
                                .shard = {object->shard()->blob(), object->shard()->first_record()},
                                .chunk_size_log2 = object->chunk_size_log2()});
  }
  return metadata;
}

}  // namespace

HostileMetadata TranscribeIndex(ByteSpan buffer) {
  const fb::Index& index = *fb::GetIndex(buffer.data());
  HostileMetadata metadata = TranscribeRoot(index);
  for (const fb::Blob* blob : *index.blobs()) {
    metadata.blobs.push_back({.id = blob->id()->bytes()->Get(0),
                              .file_size = blob->file_size(),
                              .table_offset = blob->table_offset(),
                              .record_count = blob->record_count(),
                              .shard_count = blob->shard_count()});
  }
  metadata.digest_algorithm = index.digest_algorithm();
  metadata.raw_bytes = index.raw_bytes();
  metadata.attributes = TextOf(index.attributes());
  for (const fb::MeshAxis* axis : *index.mesh()) {
    metadata.mesh.emplace_back(axis->name()->str(), axis->size());
  }
  for (const fb::ProvenanceEntry* entry : *index.provenance()) {
    metadata.provenance.emplace_back(entry->key()->str(), entry->value()->str());
  }
  return metadata;
}

HostileMetadata TranscribeManifest(ByteSpan buffer) {
  return TranscribeRoot(*flatbuffers::GetRoot<fb::Manifest>(buffer.data()));
}

void CopyPins(ByteSpan good, Bytes& buffer) {
  for (const fb::Blob* to : *fb::GetIndex(buffer.data())->blobs()) {
    for (const fb::Blob* from : *fb::GetIndex(good.data())->blobs()) {
      if (from->id()->bytes()->Get(0) != to->id()->bytes()->Get(0)) continue;
      const auto copy = [&](const fb::Bits128* source, const fb::Bits128* target) {
        const auto offset = reinterpret_cast<const std::byte*>(target) - buffer.data();
        std::memcpy(buffer.data() + offset, source, sizeof(fb::Bits128));
      };
      copy(from->group_list_digest(), to->group_list_digest());
      copy(from->trailer_digest(), to->trailer_digest());
      copy(from->id(), to->id());
    }
  }
}

std::function<void(Bytes&)> EditIndex(const MetadataChange& change) {
  return [change](Bytes& buffer) {
    const Bytes good = buffer;
    HostileMetadata metadata = TranscribeIndex(good);
    change(metadata);
    buffer = EncodeHostileIndex(metadata);
    CopyPins(good, buffer);
  };
}

}  // namespace sealpoint::testing
