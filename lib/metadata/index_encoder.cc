// SPDX-License-Identifier: Apache-2.0
#include "lib/metadata/index_encoder.h"

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::metadata {
namespace {

using FbBlobs = flatbuffers::Vector<flatbuffers::Offset<fb::Blob>>;
using FbAxes = flatbuffers::Vector<flatbuffers::Offset<fb::MeshAxis>>;
using FbProvenance = flatbuffers::Vector<flatbuffers::Offset<fb::ProvenanceEntry>>;

// No overflow, since the manifests were verified (R-IDX-11).
std::uint64_t ElementCountOf(Numbers shape) {
  std::uint64_t count = 1;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

flatbuffers::Offset<FbBlobs> AddBlobs(flatbuffers::FlatBufferBuilder& builder,
                                      std::span<const BlobPin> pins) {
  std::vector<flatbuffers::Offset<fb::Blob>> tables;
  for (const BlobPin& pin : pins) {
    const fb::Bits128 id = BitsOf(pin.id);
    const fb::Bits128 group_list_digest = BitsOf(pin.group_list_digest);
    const fb::Bits128 trailer_digest = BitsOf(pin.trailer_digest);
    tables.push_back(fb::CreateBlob(builder, &id, pin.file_size, pin.table_offset, pin.record_count,
                                    pin.shard_count, &group_list_digest, &trailer_digest));
  }
  return builder.CreateVector(tables.data(), tables.size());
}

flatbuffers::Offset<FbAxes> AddMesh(flatbuffers::FlatBufferBuilder& builder,
                                    const IndexAttributes& attributes) {
  std::vector<flatbuffers::Offset<fb::MeshAxis>> tables;
  for (const auto& [name, size] : attributes.mesh) {
    const auto text = builder.CreateString(name.data(), name.size());
    tables.push_back(fb::CreateMeshAxis(builder, text, size));
  }
  return builder.CreateVector(tables.data(), tables.size());
}

flatbuffers::Offset<FbProvenance> AddProvenance(flatbuffers::FlatBufferBuilder& builder,
                                                const IndexAttributes& attributes) {
  auto entries = attributes.provenance;
  std::sort(entries.begin(), entries.end());
  std::vector<flatbuffers::Offset<fb::ProvenanceEntry>> tables;
  for (const auto& [key, value] : entries) {
    const auto fb_key = builder.CreateString(key.data(), key.size());
    const auto fb_value = builder.CreateString(value.data(), value.size());
    tables.push_back(fb::CreateProvenanceEntry(builder, fb_key, fb_value));
  }
  return builder.CreateVector(tables.data(), tables.size());
}

flatbuffers::Offset<fb::Base> AddBase(flatbuffers::FlatBufferBuilder& builder,
                                      const IndexAttributes& attributes) {
  if (!attributes.base) return 0;
  const fb::Bits128 attempt = BitsOf(attributes.base->attempt);
  const fb::Bits128 index_digest = BitsOf(attributes.base->index_digest);
  return fb::CreateBase(builder, &attempt, &index_digest, attributes.base->step,
                        attributes.base->depth);
}

}  // namespace

Status CheckPins(std::span<const BlobPin> pins, const Limits& limits) {
  if (pins.size() > limits.blob_count_max) {
    return MakeError(Code::kLimitExceeded, "index has ", pins.size(), " blobs, the limit is ",
                     limits.blob_count_max);
  }
  for (std::size_t i = 1; i < pins.size(); ++i) {
    if (pins[i - 1].id != pins[i].id) continue;
    return InvalidArgument("blob ", pins[i].id.ToHex(), " is given twice");
  }
  return {};
}

Status IndexEncoder::AddTensor(const MergedTensor& tensor,
                               const std::vector<std::string>& placement) {
  const TensorFields& fields = tensor.fields;
  const std::size_t ndim = fields.shape.size();
  SEALPOINT_RETURN_IF_ERROR(AddRawBytes(ElementCountOf(fields.shape) * fields.element_size));
  const std::uint64_t numbers = ndim + tensor.shards.size() * (2 * ndim + 3);
  SEALPOINT_RETURN_IF_ERROR(
      CheckRoom(kEntryOverheadBytes + fields.name.size() + 8 * numbers + fields.attributes.size()));
  EncodedGeometry geometry;
  if (tensor.geometry) geometry = AddGeometry(*tensor.geometry);
  encoder_.AddTensor(fields, geometry, tensor.shards, encoder_.AddPlacement(placement));
  return {};
}

Status IndexEncoder::AddObject(const ObjectFields& object) {
  SEALPOINT_RETURN_IF_ERROR(AddRawBytes(object.size));
  SEALPOINT_RETURN_IF_ERROR(CheckRoom(kEntryOverheadBytes + object.name.size()));
  encoder_.AddObject(object.name, object.media_type, object.size,
                     object.size != 0 ? object.shard : fb::ShardRef(), object.chunk_size_log2);
  return {};
}

Result<Bytes> IndexEncoder::Finish(std::span<const BlobPin> pins,
                                   const IndexAttributes& attributes) {
  std::uint64_t size = pins.size() * kEntryOverheadBytes + attributes.attributes.encoded().size();
  for (const auto& [name, extent] : attributes.mesh) size += kEntryOverheadBytes + name.size();
  for (const auto& [key, value] : attributes.provenance) {
    size += kEntryOverheadBytes + key.size() + value.size();
  }
  SEALPOINT_RETURN_IF_ERROR(CheckRoom(size));
  auto& builder = encoder_.builder();
  const auto tensors = encoder_.FinishTensors();
  const auto objects = encoder_.FinishObjects();
  const auto blobs = AddBlobs(builder, pins);
  const auto mesh = AddMesh(builder, attributes);
  const auto provenance = AddProvenance(builder, attributes);
  const auto base = AddBase(builder, attributes);
  const auto own = encoder_.AddAttributes(attributes.attributes.encoded());
  builder.Finish(
      fb::CreateIndex(builder, tensors, objects, blobs,
                      static_cast<std::uint16_t>(DigestAlgorithm::kXxh3_128),
                      attributes.created_unix_ns, raw_bytes_, mesh, provenance, base, own),
      kIndexIdentifier);
  return encoder_.TakeBytes();
}

Status IndexEncoder::CheckRoom(std::uint64_t size) const {
  if (encoder_.HasRoom(size)) return {};
  return MakeError(Code::kLimitExceeded, "index exceeds its limit of ",
                   limits_.index_size_max_bytes, " bytes");
}

Status IndexEncoder::AddRawBytes(std::uint64_t bytes) {
  const auto sum = CheckedAdd(raw_bytes_, bytes);
  if (!sum) return InvalidArgument("the sum of all sizes does not fit 64 bits");
  raw_bytes_ = *sum;
  return {};
}

EncodedGeometry IndexEncoder::AddGeometry(const TensorGeometry& geometry) {
  const auto found = geometries_.find(&geometry);
  if (found != geometries_.end()) return found->second;
  const EncodedGeometry encoded = geometry.grid
                                      ? encoder_.AddGrid(*geometry.grid)
                                      : encoder_.AddBoxList(geometry.boxes, geometry.runs);
  geometries_.emplace(&geometry, encoded);
  return encoded;
}

}  // namespace sealpoint::internal::metadata
