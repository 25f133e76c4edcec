// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_MANIFEST_BUILDER_H_
#define SEALPOINT_LIB_METADATA_MANIFEST_BUILDER_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/metadata/metadata.h"

namespace sealpoint::internal {

// One shard that a blob holds.
struct ManifestShard {
  Region region{};
  std::uint32_t first_record = 0;
};

struct ManifestTensor {
  std::string name{};
  DType dtype = DType::kUInt8;
  std::uint32_t element_size = 1;
  std::uint64_t chunk_size = 0;
  Shape shape{};
  std::vector<std::string> placement{};
  std::vector<ManifestShard> shards{};  // any order
};

struct ManifestObject {
  std::string name{};
  std::string media_type{};
  std::uint64_t size = 0;
  std::uint64_t chunk_size = 0;
  std::uint32_t first_record = 0;
};

// Encodes a manifest: sorts tensors, objects and shards; deterministic. The caller has validated
// the values (names, regions); the result is checked by Metadata::DecodeManifest before use. An
// empty result means that the manifest would exceed the 2^31 - 1 bytes of a FlatBuffer.
Bytes EncodeManifest(std::vector<ManifestTensor> tensors, std::vector<ManifestObject> objects);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_MANIFEST_BUILDER_H_
