// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_METADATA_TENSOR_VIEW_H_
#define SEALPOINT_LIB_METADATA_TENSOR_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sealpoint/dtype.h"
#include "sealpoint/fingerprint.h"
#include "sealpoint/region.h"

// The entries of a verified manifest or index. No generated type appears here.

namespace sealpoint::internal::metadata {

class Metadata;

struct ShardRef {
  std::uint32_t blob = 0;
  std::uint32_t first_record = 0;
  friend bool operator==(const ShardRef&, const ShardRef&) = default;
};

// A borrowed tensor entry. Valid while the Metadata it came from lives.
class TensorView {
 public:
  std::string_view name() const;
  DType dtype() const;
  std::uint32_t element_size() const;
  std::uint64_t chunk_size() const;
  Shape shape() const;
  std::uint64_t element_count() const;
  std::vector<std::string> placement() const;
  // In a manifest, of the part in its blob.
  std::optional<Fingerprint> fingerprint() const;
  // Encoded; empty if there are none.
  std::string_view attributes() const;

  std::size_t shard_count() const;
  ShardRef shard_ref(std::size_t shard) const;
  bool is_grid() const;
  // True if it is stored in one shard and `region` covers it completely.
  bool IsOneShard(const Region& region) const;
  // Calls visit(number, region) for all shards in stored order, without making a list. O(shards).
  void ForEachShard(const std::function<void(std::size_t shard, Region region)>& visit) const;
  // All shard regions in stored order. O(shards).
  std::vector<Region> regions() const;
  // Numbers (ascending) and regions of the shards that may share elements with `box`. They are
  // found by binary search in the cuts of a grid (with run cuts, after a scan of their counts), and
  // by a scan of a box list. Precondition: the box has the tensor's ndim and is in its shape.
  std::vector<std::pair<std::size_t, Region>> ShardsTouching(const Box& box) const;

 private:
  friend class Metadata;
  friend struct MetadataTables;
  TensorView(const void* table, bool has_fingerprint, bool has_attributes)
      : table_(table), has_fingerprint_(has_fingerprint), has_attributes_(has_attributes) {}
  const void* table_;  // the generated table type
  bool has_fingerprint_ = false;
  bool has_attributes_ = false;
};

class ObjectView {
 public:
  std::string_view name() const;
  std::string_view media_type() const;
  std::uint64_t size() const;
  std::uint64_t chunk_size() const;
  ShardRef shard_ref() const;  // meaningless if size() == 0

 private:
  friend class Metadata;
  explicit ObjectView(const void* table) : table_(table) {}
  const void* table_;
};

// The number of chunks, and so of records, of `raw_size` bytes: ceil(raw_size / chunk_size).
std::uint64_t ChunkCount(std::uint64_t raw_size, std::uint64_t chunk_size);

}  // namespace sealpoint::internal::metadata

#endif  // SEALPOINT_LIB_METADATA_TENSOR_VIEW_H_
