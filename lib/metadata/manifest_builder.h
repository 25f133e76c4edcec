// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_MANIFEST_BUILDER_H_
#define SEALPOINT_LIB_METADATA_MANIFEST_BUILDER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/metadata/metadata.h"
#include "lib/metadata/tensor_table.h"
#include "sealpoint/fingerprint.h"

namespace sealpoint::internal::metadata {

struct ManifestObject {
  std::string name{};
  std::string media_type{};
  std::uint64_t size = 0;
  std::uint64_t chunk_size = 0;
  std::uint32_t first_record = 0;
};

// The bytes of a manifest, which `owner` holds.
struct EncodedManifest {
  ByteSpan bytes{};
  std::shared_ptr<const void> owner{};
};

// Collects the tensors and objects of one blob and encodes its manifest: by name, with shards by
// region; deterministic. The caller has validated the values (names, regions); the result is
// checked by Metadata::DecodeManifest before use. Borrows the table, which may grow meanwhile.
class ManifestBuilder {
 public:
  explicit ManifestBuilder(const TensorTable& tensors, bool has_fingerprints = false)
      : tensors_(tensors), has_fingerprints_(has_fingerprints) {}

  // A tensor of the table; false if it was added before.
  bool AddTensor(std::uint32_t tensor);
  // Adds a shard to a tensor that was added before.
  void AddShard(std::uint32_t tensor, const Region& region, std::uint32_t first_record);
  // Adds the fingerprint of some elements of its shards. Precondition: it has fingerprints.
  void AddFingerprint(std::uint32_t tensor, const Fingerprint& part);
  void AddObject(ManifestObject object) { objects_.push_back(std::move(object)); }

  // The last call: gives back all memory but the result. Empty if the manifest would exceed the
  // 2^31 - 1 bytes of a FlatBuffer.
  EncodedManifest Encode();

 private:
  // Its numbers start at `numbers` in numbers_: offset and extent of the box, begin and end of the
  // run. Adjacent equal sequences are stored once.
  struct Shard {
    std::uint32_t tensor = 0;
    std::uint32_t first_record = 0;
    std::uint64_t numbers = 0;
  };

  class Encoder;

  std::optional<Fingerprint> FingerprintOf(std::uint32_t tensor) const;

  const TensorTable& tensors_;
  const bool has_fingerprints_;
  std::vector<bool> is_added_;  // by number
  std::vector<std::uint32_t> added_;
  std::vector<Shard> shards_;
  std::vector<std::uint64_t> numbers_;
  std::vector<ManifestObject> objects_;
  std::vector<Fingerprint> fingerprints_;  // by number; zero behind the last
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_MANIFEST_BUILDER_H_
