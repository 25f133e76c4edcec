// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_VERIFY_SHARD_MAP_H_
#define SEALPOINT_READERS_VERIFY_SHARD_MAP_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "lib/format/chunk_table.h"
#include "lib/metadata/metadata.h"
#include "sealpoint/id.h"
#include "sealpoint/region.h"

namespace sealpoint::internal::verify {

// One shard as the index pins it.
struct ShardEntry {
  std::uint32_t first_record = 0;
  std::uint32_t item = 0;  // tensor number, or object number with kObjectBit
  std::uint64_t raw_size = 0;
  std::uint32_t region = 0;  // number in the map's regions, with a base
  Digest region_digest;      // represents the region, so that manifests are compared in linear time
};

// The shards of an index sorted by (blob, first record), that is by (blob, ordinal). Borrows the
// index. Immutable; thread safe.
class ShardMap {
 public:
  // Includes only blobs with a set flag; there is one flag for each blob of the index. A map of
  // missing blobs would use memory for unverified claims.
  ShardMap(const metadata::Metadata& index, const std::vector<std::uint8_t>& wanted_blobs);

  const metadata::Metadata& index() const { return *index_; }
  // Tile the blob's records (R-IDX-20); position = shard ordinal.
  std::span<const ShardEntry> OfBlob(std::size_t blob) const;

  // The error, which then names the tensor or object of the shard.
  Status AtItemOf(const ShardEntry& shard, Status error) const;
  bool IsObject(const ShardEntry& shard) const { return (shard.item & kObjectBit) != 0; }
  std::uint32_t ElementSizeOf(const ShardEntry& shard) const;
  format::ShardShape ShapeOf(const ShardEntry& shard) const;
  // The tensor of a shard, and the elements of one of its chunks. Preconditions: the index has a
  // base; the shard is none of an object.
  metadata::TensorView TensorOf(const ShardEntry& shard) const {
    return index_->tensor(shard.item);
  }
  Region ElementsOf(const ShardEntry& shard, std::uint64_t chunk) const;

  static std::uint32_t TensorItem(std::size_t tensor) { return static_cast<std::uint32_t>(tensor); }
  static std::uint32_t ObjectItem(std::size_t object) {
    return kObjectBit | static_cast<std::uint32_t>(object);
  }
  static Digest RegionDigest(const Region& region);

 private:
  static constexpr std::uint32_t kObjectBit = std::uint32_t{1} << 31;
  template <typename Visit>
  void ForEachShard(const std::vector<std::uint8_t>& wanted_blobs, const Visit& visit);

  const metadata::Metadata* index_;
  std::vector<ShardEntry> shards_;
  std::vector<std::size_t> begins_;  // per blob, and the end
  std::vector<Region> regions_;      // of tensors' shards, with a base
};

}  // namespace sealpoint::internal::verify

#endif  // SEALPOINT_READERS_VERIFY_SHARD_MAP_H_
