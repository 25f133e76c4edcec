// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_FORMAT_CONTENTS_H_
#define SEALPOINT_LIB_FORMAT_CONTENTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/dtype.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/region.h"
#include "sealpoint/status.h"

// Verified views of a manifest or an index: nothing is copied out of the FlatBuffer, so that
// opening costs one pass. No generated type appears here.

namespace sealpoint::internal {

struct ShardRef {
  std::uint32_t blob = 0;
  std::uint32_t first_record = 0;
  friend bool operator==(const ShardRef&, const ShardRef&) = default;
};

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

// A borrowed tensor entry. Valid while the Contents it came from lives.
class TensorView {
 public:
  std::string_view name() const;
  DType dtype() const;
  std::uint32_t element_size() const;
  std::uint64_t chunk_size() const;
  Shape shape() const;
  std::uint64_t element_count() const;
  std::vector<std::string> placement() const;

  std::size_t shard_count() const;
  ShardRef shard_ref(std::size_t shard) const;
  bool is_grid() const;
  // Numbers and regions of all shards in stored order, without a list of them. O(shards).
  void ForEachShard(const std::function<void(std::size_t shard, Region region)>& visit) const;
  // All shard regions in stored order. O(shards).
  std::vector<Region> regions() const;
  // Numbers (ascending) and regions of the shards that may share elements with `box`; for a grid
  // found by binary search in the cuts (with run cuts, after a scan of their counts), for a box
  // list by a scan. Precondition: the box has the tensor's ndim and lies in its shape.
  std::vector<std::pair<std::size_t, Region>> ShardsTouching(const Box& box) const;

 private:
  friend class Contents;
  explicit TensorView(const void* table) : table_(table) {}
  const void* table_;  // the generated table type
};

class ObjectView {
 public:
  std::string_view name() const;
  std::string_view media_type() const;
  std::uint64_t size() const;
  std::uint64_t chunk_size() const;
  ShardRef shard_ref() const;  // meaningless where size() == 0

 private:
  friend class Contents;
  explicit ObjectView(const void* table) : table_(table) {}
  const void* table_;
};

enum class ContentsKind : std::uint8_t { kManifest, kIndex };

// Raw bytes, chunks and records of a region or object: ceil(bytes / chunk_size).
std::uint64_t ChunkCount(std::uint64_t raw_size, std::uint64_t chunk_size);

// A manifest or an index that passed every rule R-IDX-*. Immutable, movable, thread safe.
class Contents {
 public:
  // An index; a manifest needs its counts, see below (InvalidArgument). `buffer` is the FlatBuffer
  // (for an index: behind the file header) inside the bytes of `owner`, which the result keeps
  // alive; InvalidArgument unless it is 8-byte aligned. Runs limits, the FlatBuffers verifier and
  // the semantic pass. Errors carry the rule; offsets are relative to the FlatBuffer. Beside the
  // buffer it takes at most a bit per record, 12 bytes per blob and what one box list needs.
  static Result<Contents> Decode(ContentsKind kind, std::shared_ptr<const Bytes> owner,
                                 ByteSpan buffer, const Limits& limits);
  // For a manifest the blob's own counts, so that R-IDX-20 and the shard count are judged.
  struct ManifestCounts {
    std::uint32_t record_count = 0;
    std::uint32_t shard_count = 0;
  };
  static Result<Contents> DecodeManifest(std::shared_ptr<const Bytes> owner, ByteSpan buffer,
                                         ManifestCounts counts, const Limits& limits);

  ContentsKind kind() const { return kind_; }
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
  friend struct ContentsTables;
  Contents() = default;
  static Result<Contents> DecodeAny(ContentsKind kind, std::shared_ptr<const Bytes> owner,
                                    ByteSpan buffer, ManifestCounts counts, const Limits& limits);

  ContentsKind kind_ = ContentsKind::kIndex;
  std::shared_ptr<const Bytes> owner_;
  const void* root_ = nullptr;  // the generated root type
  std::uint64_t total_shard_count_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_FORMAT_CONTENTS_H_
