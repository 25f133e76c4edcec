// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_CONTAINER_ENCODE_MANIFEST_H_
#define SEALPOINT_TESTS_SUPPORT_CONTAINER_ENCODE_MANIFEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "lib/metadata/manifest_builder.h"
#include "sealpoint/bytes.h"
#include "sealpoint/dtype.h"
#include "sealpoint/region.h"

// Manifests without a writer: a tensor with its shards as one value, which tests can change.

namespace sealpoint::testing {

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
  Fingerprint fingerprint{};
  Attributes attributes{};
};

// The manifest of these tensors and objects, of which each is there once.
inline Bytes EncodeManifest(const std::vector<ManifestTensor>& tensors,
                            const std::vector<internal::metadata::ManifestObject>& objects,
                            bool has_fingerprints = false) {
  internal::metadata::TensorTable table;
  internal::metadata::ManifestBuilder builder(table, has_fingerprints);
  for (const ManifestTensor& tensor : tensors) {
    const std::uint32_t number = table.Add({.name = tensor.name,
                                            .dtype = tensor.dtype,
                                            .element_size = tensor.element_size,
                                            .chunk_size = tensor.chunk_size,
                                            .shape = tensor.shape,
                                            .placement = tensor.placement,
                                            .attributes = tensor.attributes.encoded()});
    builder.AddTensor(number);
    for (const ManifestShard& shard : tensor.shards) {
      builder.AddShard(number, shard.region, shard.first_record);
    }
    if (has_fingerprints) builder.AddFingerprint(number, tensor.fingerprint);
  }
  for (const internal::metadata::ManifestObject& object : objects) builder.AddObject(object);
  const internal::metadata::EncodedManifest manifest = builder.Encode();
  return Bytes(manifest.bytes.begin(), manifest.bytes.end());
}

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_CONTAINER_ENCODE_MANIFEST_H_
