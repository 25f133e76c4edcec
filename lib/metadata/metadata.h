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

#include "lib/metadata/tensor_view.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"

// Verified views of a manifest or an index: nothing is copied out of the FlatBuffer, so that
// opening costs one pass. No generated type appears here.

namespace sealpoint::internal {

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

// A manifest or an index that passed every rule R-IDX-*. Immutable, movable, thread safe.
class Metadata {
 public:
  // An index; a manifest needs its counts, see below (InvalidArgument). `buffer` is the FlatBuffer
  // (for an index: behind the file header) inside the bytes of `owner`, which the result keeps
  // alive; InvalidArgument unless it is 8-byte aligned. Runs limits, the FlatBuffers verifier and
  // the semantic pass. Errors carry the rule; offsets are relative to the FlatBuffer. Beside the
  // buffer it takes at most a bit per record, 12 bytes per blob and what one box list needs.
  static Result<Metadata> Decode(MetadataKind kind, std::shared_ptr<const Bytes> owner,
                                 ByteSpan buffer, const Limits& limits);
  // For a manifest the blob's own counts, so that R-IDX-20 and the shard count are checked.
  struct ManifestCounts {
    std::uint32_t record_count = 0;
    std::uint32_t shard_count = 0;
  };
  static Result<Metadata> DecodeManifest(std::shared_ptr<const Bytes> owner, ByteSpan buffer,
                                         ManifestCounts counts, const Limits& limits);

  MetadataKind kind() const { return kind_; }
  std::size_t tensor_count() const;
  TensorView tensor(std::size_t i) const;
  std::optional<std::size_t> FindTensor(std::string_view name) const;  // binary search
  std::size_t object_count() const;
  ObjectView object(std::size_t i) const;
  std::optional<std::size_t> FindObject(std::string_view name) const;

  // Of an index only; empty or zero for a manifest.
  std::size_t blob_count() const;
  BlobPin blob(std::size_t i) const;
  std::uint64_t created_unix_ns() const;
  std::uint64_t raw_bytes() const;
  DigestAlgorithm digest_algorithm() const;
  std::vector<std::pair<std::string, std::uint32_t>> mesh() const;
  std::vector<std::pair<std::string, std::string>> provenance() const;
  std::uint64_t total_shard_count() const { return total_shard_count_; }

 private:
  friend struct MetadataTables;
  Metadata() = default;
  static Result<Metadata> DecodeAny(MetadataKind kind, std::shared_ptr<const Bytes> owner,
                                    ByteSpan buffer, ManifestCounts counts, const Limits& limits);

  MetadataKind kind_ = MetadataKind::kIndex;
  std::shared_ptr<const Bytes> owner_;
  const void* root_ = nullptr;  // the generated root type
  std::uint64_t total_shard_count_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_METADATA_METADATA_H_
