// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FORMAT_CONTENTS_BUILDER_H_
#define SEALPOINT_LIB_FORMAT_CONTENTS_BUILDER_H_

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/format/contents.h"

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
// the values (names, regions); the result is checked by Contents::DecodeManifest before use. An
// empty result means that the manifest would pass the 2^31 - 1 bytes of a FlatBuffer.
Bytes EncodeManifest(std::vector<ManifestTensor> tensors, std::vector<ManifestObject> objects);

// What one blob contributes to an index.
struct BlobContribution {
  BlobPin pin{};
  const Contents* manifest = nullptr;  // borrowed
};

struct IndexFacts {
  std::uint64_t created_unix_ns = 0;
  std::vector<std::pair<std::string, std::uint32_t>> mesh{};
  std::vector<std::pair<std::string, std::string>> provenance{};  // any order, unique keys
};

// Merges manifests into the FlatBuffer of an index: tensors by name over all blobs, a grid where
// the shards form one, else a box list; exact tiling is checked. Blobs are sorted by id, so that
// the bytes do not depend on the order given. Tensors that are declared with an extent of 0 carry
// no shards. A tensor's placement is that of the first blob that has one. Errors (InvalidArgument,
// with tensor and the blobs concerned): a name with different dtype, shape or chunk size in two
// blobs, a hole, an overlap, an object in two blobs, the same blob twice; LimitExceeded. Whether
// the records fit the blobs is judged by Contents::Decode.
Result<Bytes> EncodeIndex(std::span<const BlobContribution> blobs, const IndexFacts& facts,
                          const Limits& limits);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_FORMAT_CONTENTS_BUILDER_H_
