// SPDX-License-Identifier: Apache-2.0
#include "tests/support/container/hostile_index.h"

#include <array>
#include <bit>
#include <span>

namespace sealpoint::testing {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;
template <typename T>
using Offsets = std::vector<flatbuffers::Offset<T>>;

class HostileEncoder {
 public:
  explicit HostileEncoder(const HostileMetadata& metadata) : metadata_(metadata) {}

  Bytes EncodeIndex() {
    const auto tensors = AddTensors();
    const auto objects = AddObjects();
    const auto blobs = AddBlobs();
    const auto mesh = AddMesh();
    const auto provenance = AddProvenance();
    flatbuffers::Offset<fb::Base> base;
    if (metadata_.base) base = AddBase(*metadata_.base);
    const auto attributes = AddAttributes(metadata_.attributes);
    fb::IndexBuilder index(fbb_);
    index.add_tensors(tensors);
    index.add_objects(objects);
    index.add_blobs(blobs);
    index.add_digest_algorithm(metadata_.digest_algorithm);
    index.add_raw_bytes(metadata_.raw_bytes);
    index.add_mesh(mesh);
    index.add_provenance(provenance);
    index.add_base(base);
    index.add_attributes(attributes);
    AddUnknown(UnknownField::kRoot, fb::Index::VT_PROVENANCE);
    fbb_.Finish(index.Finish(), "SPIX");
    return Take();
  }

  Bytes EncodeManifest() {
    const auto tensors = AddTensors();
    const auto objects = AddObjects();
    fb::ManifestBuilder manifest(fbb_);
    manifest.add_tensors(tensors);
    manifest.add_objects(objects);
    AddUnknown(UnknownField::kRoot, fb::Manifest::VT_OBJECTS);
    fbb_.Finish(manifest.Finish(), "SPMF");
    return Take();
  }

 private:
  void AddUnknown(UnknownField table, int last_known) {
    const auto& tables = metadata_.unknown_fields;
    if (std::find(tables.begin(), tables.end(), table) == tables.end()) return;
    fbb_.AddElement<std::uint8_t>(static_cast<flatbuffers::voffset_t>(last_known + 2), 1, 0);
  }

  Bytes Take() const {
    const auto bytes = std::as_bytes(std::span(fbb_.GetBufferPointer(), fbb_.GetSize()));
    return Bytes(bytes.begin(), bytes.end());
  }

  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> AddAttributes(
      const std::optional<std::string>& set) {
    if (!set) return 0;
    return fbb_.CreateVector(reinterpret_cast<const std::uint8_t*>(set->data()), set->size());
  }

  flatbuffers::Offset<fb::Grid> AddGrid(const HostileGrid& grid) {
    const auto cuts = fbb_.CreateVector(grid.cuts);
    const auto counts = fbb_.CreateVector(grid.cut_counts);
    flatbuffers::Offset<flatbuffers::Vector<std::uint32_t>> run_counts;
    flatbuffers::Offset<flatbuffers::Vector<std::uint64_t>> run_cuts;
    if (grid.run_cut_counts) run_counts = fbb_.CreateVector(*grid.run_cut_counts);
    if (grid.run_cuts) run_cuts = fbb_.CreateVector(*grid.run_cuts);
    fb::GridBuilder builder(fbb_);
    builder.add_cuts(cuts);
    builder.add_cut_counts(counts);
    builder.add_run_cut_counts(run_counts);
    builder.add_run_cuts(run_cuts);
    AddUnknown(UnknownField::kGrid, fb::Grid::VT_RUN_CUTS);
    return builder.Finish();
  }

  flatbuffers::Offset<fb::BoxList> AddBoxes(const HostileBoxes& list) {
    const auto boxes = fbb_.CreateVector(list.boxes);
    flatbuffers::Offset<flatbuffers::Vector<std::uint64_t>> runs;
    if (list.runs) runs = fbb_.CreateVector(*list.runs);
    fb::BoxListBuilder builder(fbb_);
    builder.add_boxes(boxes);
    builder.add_runs(runs);
    AddUnknown(UnknownField::kBoxList, fb::BoxList::VT_RUNS);
    return builder.Finish();
  }

  flatbuffers::Offset<fb::Tensor> AddTensor(const HostileTensor& tensor) {
    const auto name = fbb_.CreateString(tensor.name);
    const auto shape = fbb_.CreateVector(tensor.shape);
    flatbuffers::Offset<fb::Grid> grid;
    flatbuffers::Offset<fb::BoxList> boxes;
    if (tensor.grid) grid = AddGrid(*tensor.grid);
    if (tensor.boxes) boxes = AddBoxes(*tensor.boxes);
    std::vector<fb::ShardRef> refs;
    for (const HostileRef& ref : tensor.shards) refs.emplace_back(ref.blob, ref.first_record);
    const auto shards = fbb_.CreateVectorOfStructs(refs);
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>> placement;
    if (!tensor.placement.empty()) placement = fbb_.CreateVectorOfStrings(tensor.placement);
    const auto attributes = AddAttributes(tensor.attributes);
    fb::TensorBuilder builder(fbb_);
    builder.add_name(name);
    builder.add_shape(shape);
    builder.add_grid(grid);
    builder.add_boxes(boxes);
    builder.add_shards(shards);
    builder.add_dtype(tensor.dtype);
    builder.add_element_size(tensor.element_size);
    builder.add_chunk_size_log2(tensor.chunk_size_log2);
    builder.add_placement(placement);
    if (tensor.fingerprint) {
      const auto bits = std::bit_cast<fb::Bits128>(*tensor.fingerprint);
      builder.add_fingerprint(&bits);
    }
    builder.add_attributes(attributes);
    AddUnknown(UnknownField::kTensor, fb::Tensor::VT_PLACEMENT);
    return builder.Finish();
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>> AddTensors() {
    Offsets<fb::Tensor> tables;
    for (const HostileTensor& tensor : metadata_.tensors) tables.push_back(AddTensor(tensor));
    return fbb_.CreateVector(tables);
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Object>>> AddObjects() {
    Offsets<fb::Object> tables;
    for (const HostileObject& object : metadata_.objects) {
      const auto name = fbb_.CreateString(object.name);
      const auto media_type = fbb_.CreateString(object.media_type);
      const fb::ShardRef ref(object.shard.blob, object.shard.first_record);
      fb::ObjectBuilder builder(fbb_);
      builder.add_name(name);
      builder.add_media_type(media_type);
      builder.add_size(object.size);
      builder.add_shard(&ref);
      builder.add_chunk_size_log2(object.chunk_size_log2);
      AddUnknown(UnknownField::kObject, fb::Object::VT_CHUNK_SIZE_LOG2);
      tables.push_back(builder.Finish());
    }
    return fbb_.CreateVector(tables);
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Blob>>> AddBlobs() {
    Offsets<fb::Blob> tables;
    for (const HostileBlob& blob : metadata_.blobs) {
      const std::array<std::uint8_t, 16> id_bytes{blob.id};
      const fb::Bits128 id{flatbuffers::span<const std::uint8_t, 16>(id_bytes)};
      const fb::Bits128 digest;
      fb::BlobBuilder builder(fbb_);
      builder.add_id(&id);
      builder.add_file_size(blob.file_size);
      builder.add_table_offset(blob.table_offset);
      builder.add_record_count(blob.record_count);
      builder.add_shard_count(blob.shard_count);
      builder.add_group_list_digest(&digest);
      builder.add_trailer_digest(&digest);
      AddUnknown(UnknownField::kBlob, fb::Blob::VT_TRAILER_DIGEST);
      tables.push_back(builder.Finish());
    }
    return fbb_.CreateVector(tables);
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::MeshAxis>>> AddMesh() {
    Offsets<fb::MeshAxis> tables;
    for (const auto& [name, size] : metadata_.mesh) {
      const auto text = fbb_.CreateString(name);
      fb::MeshAxisBuilder builder(fbb_);
      builder.add_name(text);
      builder.add_size(size);
      AddUnknown(UnknownField::kMeshAxis, fb::MeshAxis::VT_SIZE);
      tables.push_back(builder.Finish());
    }
    return fbb_.CreateVector(tables);
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::ProvenanceEntry>>>
  AddProvenance() {
    Offsets<fb::ProvenanceEntry> tables;
    for (const auto& [key, value] : metadata_.provenance) {
      const auto fb_key = fbb_.CreateString(key);
      const auto fb_value = fbb_.CreateString(value);
      fb::ProvenanceEntryBuilder builder(fbb_);
      builder.add_key(fb_key);
      builder.add_value(fb_value);
      AddUnknown(UnknownField::kProvenance, fb::ProvenanceEntry::VT_VALUE);
      tables.push_back(builder.Finish());
    }
    return fbb_.CreateVector(tables);
  }

  flatbuffers::Offset<fb::Base> AddBase(const HostileBase& base) {
    const fb::Bits128 attempt{flatbuffers::span<const std::uint8_t, 16>(base.attempt)};
    const fb::Bits128 digest{flatbuffers::span<const std::uint8_t, 16>(base.index_digest)};
    fb::BaseBuilder builder(fbb_);
    builder.add_attempt(&attempt);
    builder.add_index_digest(&digest);
    builder.add_step(base.step);
    builder.add_depth(base.depth);
    return builder.Finish();
  }

  const HostileMetadata& metadata_;
  Builder fbb_;
};

}  // namespace

Bytes EncodeHostileIndex(const HostileMetadata& metadata) {
  return HostileEncoder(metadata).EncodeIndex();
}

Bytes EncodeHostileManifest(const HostileMetadata& metadata) {
  return HostileEncoder(metadata).EncodeManifest();
}

}  // namespace sealpoint::testing
