// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_METADATA_ENCODER_H_
#define SEALPOINT_LIB_METADATA_METADATA_ENCODER_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/layout/grid.h"
#include "lib/metadata/generated_types.h"
#include "lib/metadata/metadata.h"
#include "lib/metadata/texts_less.h"

namespace sealpoint::internal::metadata {

// Gives lib/metadata the generated root table of decoded metadata.
struct MetadataTables {
  // Precondition: `metadata` is that of a manifest.
  static const fb::Manifest& ManifestOf(const Metadata& metadata) {
    return *static_cast<const fb::Manifest*>(metadata.root_);
  }
  // `tensor` is one of its tables.
  static TensorView ViewOf(const Metadata& metadata, const fb::Tensor& tensor) {
    return {&tensor, metadata.has_fingerprints_, metadata.has_attributes_};
  }
};

struct NumbersHash {
  std::size_t operator()(const std::vector<std::uint64_t>& numbers) const;
};
template <typename Value>
using NumbersMap = std::unordered_map<std::vector<std::uint64_t>, Value, NumbersHash>;

// The offsets of an encoded geometry; at most one is set.
struct EncodedGeometry {
  flatbuffers::Offset<fb::Grid> grid;
  flatbuffers::Offset<fb::BoxList> boxes;
};

// The fields of a tensor entry that are not its geometry.
struct TensorFields {
  std::string_view name;
  Numbers shape;
  std::uint16_t dtype = 0;
  std::uint16_t element_size = 0;
  std::uint8_t chunk_size_log2 = 0;
  std::optional<Fingerprint> fingerprint{};
  std::string_view attributes{};  // encoded
};

// Encodes the tables that manifest and index have in common. Equal shapes, placements, attributes
// and media types are stored once. The same calls give the same bytes.
class MetadataEncoder {
 public:
  // `size_max_bytes` limits the FlatBuffer and is reduced to the maximum that FlatBuffers can
  // address.
  MetadataEncoder(std::uint64_t size_hint_bytes, std::uint64_t size_max_bytes);

  // True if about `size_bytes` more fit. Call it before adding anything with a length that depends
  // on the caller: FlatBuffers does not check, and its 32-bit offsets would wrap silently.
  bool HasRoom(std::uint64_t size_bytes) const;

  // `shards` in stored order.
  void AddTensor(const TensorFields& fields, const EncodedGeometry& geometry,
                 std::span<const fb::ShardRef> shards, flatbuffers::Offset<FbStrings> placement);
  void AddObject(std::string_view name, std::string_view media_type, std::uint64_t size,
                 fb::ShardRef shard, std::uint8_t chunk_size_log2);

  EncodedGeometry AddGrid(const layout::Grid& grid);
  // `runs` is empty if each shard is the full run of its box.
  EncodedGeometry AddBoxList(Numbers boxes, Numbers runs);
  // Returns no offset for an empty list.
  flatbuffers::Offset<FbStrings> AddPlacement(std::span<const std::string> texts);

  // Returns no offset for an empty set.
  flatbuffers::Offset<FbBytes> AddAttributes(std::string_view encoded);

  flatbuffers::FlatBufferBuilder& builder() { return builder_; }

  // The vectors of all that was added, in the order of the calls; once each.
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Tensor>>> FinishTensors();
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Object>>> FinishObjects();

  // The finished buffer.
  Bytes TakeBytes() const;

 private:
  flatbuffers::Offset<FbNumbers> AddNumbers(Numbers numbers);
  flatbuffers::Offset<FbNumbers> AddShape(Numbers shape);

  std::uint64_t size_max_bytes_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<flatbuffers::Offset<fb::Tensor>> tensors_;
  std::vector<flatbuffers::Offset<fb::Object>> objects_;
  std::vector<std::uint64_t> shape_key_;
  NumbersMap<flatbuffers::Offset<FbNumbers>> shapes_;
  std::map<std::vector<std::string>, flatbuffers::Offset<FbStrings>, TextsLess> placements_;
  std::map<std::string, flatbuffers::Offset<FbBytes>, std::less<>> attributes_;
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_METADATA_ENCODER_H_
