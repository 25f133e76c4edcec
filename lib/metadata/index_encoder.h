// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_INDEX_ENCODER_H_
#define SEALPOINT_LIB_METADATA_INDEX_ENCODER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/metadata/index_attributes.h"
#include "lib/metadata/metadata_encoder.h"
#include "lib/metadata/tensor_merger.h"

namespace sealpoint::internal::metadata {

// The largest size of an entry of an index without its names and numbers.
inline constexpr std::uint64_t kEntryOverheadBytes = 256;

// Checks the pins of an index, which are sorted by id. Errors: InvalidArgument (the same blob
// twice), LimitExceeded.
Status CheckPins(std::span<const BlobPin> pins, const Limits& limits);

// Writes the FlatBuffer of an index: tensors, then objects, each in the order of their names, then
// the rest. The same calls give the same bytes: the index that owners merge and the index that one
// process merges are built by this class and must be equal byte for byte.
class IndexEncoder {
 public:
  // Keeps a reference to the limits.
  IndexEncoder(std::uint64_t size_hint_bytes, const Limits& limits)
      : limits_(limits), encoder_(size_hint_bytes, limits.index_size_max_bytes) {}

  // Equal geometries must be one object, which must live as long as this one. Errors:
  // LimitExceeded, InvalidArgument (the sum of all sizes passes 64 bits).
  Status AddTensor(const MergedTensor& tensor, const std::vector<std::string>& placement);
  struct ObjectFields {
    std::string_view name;
    std::string_view media_type;
    std::uint64_t size = 0;
    fb::ShardRef shard;  // ignored if the size is 0
    std::uint8_t chunk_size_log2 = 0;
  };
  Status AddObject(const ObjectFields& object);
  // `pins` ascend by id.
  Result<Bytes> Finish(std::span<const BlobPin> pins, const IndexAttributes& attributes);

 private:
  Status CheckRoom(std::uint64_t size) const;
  Status AddRawBytes(std::uint64_t bytes);
  EncodedGeometry AddGeometry(const TensorGeometry& geometry);

  const Limits& limits_;
  MetadataEncoder encoder_;
  std::uint64_t raw_bytes_ = 0;
  std::unordered_map<const TensorGeometry*, EncodedGeometry> geometries_;
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_INDEX_ENCODER_H_
