// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_METADATA_H_
#define SEALPOINT_LIB_METADATA_METADATA_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/format/constants.h"
#include "lib/format/file_header.h"
#include "lib/metadata/index_attributes.h"
#include "lib/metadata/tensor_view.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

// Verified views of a manifest or an index: nothing is copied out of the FlatBuffer, so opening
// costs one pass. No generated type appears here.

namespace sealpoint::internal::metadata {

struct BlobPin {
  BlobId id{};
  std::uint64_t file_size = 0;
  std::uint64_t table_offset = 0;
  std::uint32_t record_count = 0;
  std::uint32_t shard_count = 0;
  Digest group_list_digest{};
  Digest trailer_digest{};
  friend bool operator==(const BlobPin&, const BlobPin&) = default;
};

enum class MetadataKind : std::uint8_t { kManifest, kIndex };

// Fields besides those of every FlatBuffer, as the feature bits in the header of its file announce
// them. Any other field is refused (R-IDX-03).
struct AnnouncedFields {
  bool unknown = false;  // they are never read; in the tables of a geometry they are refused still
  bool fingerprints = false;
  bool attributes = false;
  std::uint64_t incompat = 0;  // the mask, for R-DLT-01

  constexpr bool may_have_base() const { return (incompat & format::kDeltaFeature) != 0; }
};
constexpr AnnouncedFields AnnouncedBy(const format::FeatureMasks& features) {
  return {.unknown = format::HasUnknownCompat(features),
          .fingerprints = (features.compat & format::kFingerprintFeature) != 0,
          .attributes = (features.compat & format::kAttributeFeature) != 0,
          .incompat = features.incompat};
}

// A manifest or an index that passed every rule R-IDX-*. Immutable, movable, thread safe.
class Metadata {
 public:
  // Decodes an index. Manifests need their counts: see DecodeManifest (InvalidArgument here).
  // `buffer` is the FlatBuffer (of an index: after the file header) inside the bytes of `owner`,
  // which the result keeps alive; InvalidArgument unless it is 8-byte aligned. Checks the limits,
  // runs the FlatBuffers verifier and then the semantic pass. Errors have the rule; their offsets
  // are relative to the FlatBuffer. In addition to the buffer it uses at most one bit per record,
  // 12 bytes per blob and the memory to check one box list.
  static Result<Metadata> Decode(MetadataKind kind, std::shared_ptr<const Bytes> owner,
                                 ByteSpan buffer, const Limits& limits,
                                 const AnnouncedFields& announced = {});
  // The counts in the blob's trailer, against which R-IDX-20 and R-IDX-21 check a manifest.
  struct ManifestCounts {
    std::uint32_t record_count = 0;
    std::uint32_t shard_count = 0;
  };
  static Result<Metadata> DecodeManifest(std::shared_ptr<const Bytes> owner, ByteSpan buffer,
                                         ManifestCounts counts, const Limits& limits,
                                         const AnnouncedFields& announced = {});

  MetadataKind kind() const { return kind_; }
  std::size_t tensor_count() const;
  TensorView tensor(std::size_t i) const;
  std::optional<std::size_t> FindTensor(std::string_view name) const;  // binary search
  std::size_t object_count() const;
  ObjectView object(std::size_t i) const;
  std::optional<std::size_t> FindObject(std::string_view name) const;

  // These belong to an index only and are empty or zero for a manifest.
  std::size_t blob_count() const;
  BlobPin blob(std::size_t i) const;
  std::optional<BaseRef> base() const;
  std::uint64_t created_unix_ns() const;
  std::uint64_t raw_bytes() const;
  DigestAlgorithm digest_algorithm() const;
  std::vector<std::pair<std::string, std::uint32_t>> mesh() const;
  std::vector<std::pair<std::string, std::string>> provenance() const;
  // Encoded; empty if there are none. Borrows.
  std::string_view attributes() const;
  std::uint64_t total_shard_count() const { return total_shard_count_; }
  // Keeps the names valid that views of this lent.
  std::shared_ptr<const Bytes> owner() const { return owner_; }

 private:
  friend struct MetadataTables;
  Metadata() = default;
  struct DecodeOptions;
  static Result<Metadata> DecodeAny(MetadataKind kind, std::shared_ptr<const Bytes> owner,
                                    ByteSpan buffer, const DecodeOptions& options);

  MetadataKind kind_ = MetadataKind::kIndex;
  std::shared_ptr<const Bytes> owner_;
  const void* root_ = nullptr;  // the generated root type
  std::uint64_t total_shard_count_ = 0;
  bool has_fingerprints_ = false;
  bool has_attributes_ = false;
  bool may_have_base_ = false;
};

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_METADATA_H_
