// SPDX-License-Identifier: Apache-2.0
#include "readers/verify/shard_map.h"

#include <algorithm>
#include <numeric>

#include "lib/base/endian.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::verify {

Digest ShardMap::RegionDigest(const Region& region) {
  Bytes encoded((2 * region.box.offset.size() + 2) * sizeof(std::uint64_t));
  std::size_t at = 0;
  const auto put = [&](std::uint64_t value) {
    StoreLe(MutableByteSpan(encoded), at, value);
    at += sizeof(value);
  };
  for (const std::uint64_t value : region.box.offset) put(value);
  for (const std::uint64_t value : region.box.extent) put(value);
  put(region.run.begin);
  put(region.run.end);
  return ComputeDigest(encoded);
}

template <typename Visit>
void ShardMap::ForEachShard(const std::vector<std::uint8_t>& wanted_blobs, const Visit& visit) {
  for (std::size_t i = 0; i < index_->tensor_count(); ++i) {
    const metadata::TensorView tensor = index_->tensor(i);
    tensor.ForEachShard([&](std::size_t s, const Region& region) {
      const metadata::ShardRef ref = tensor.shard_ref(s);
      if (!wanted_blobs[ref.blob]) return;
      visit(ref.blob, ShardEntry{.first_record = ref.first_record,
                                 .item = TensorItem(i),
                                 .raw_size = region.element_count() * tensor.element_size(),
                                 .region = static_cast<std::uint32_t>(regions_.size()),
                                 .region_digest = RegionDigest(region)});
      if (index_->base()) regions_.push_back(region);
    });
  }
  for (std::size_t i = 0; i < index_->object_count(); ++i) {
    const metadata::ObjectView object = index_->object(i);
    if (object.size() == 0) continue;
    const metadata::ShardRef ref = object.shard_ref();
    if (!wanted_blobs[ref.blob]) continue;
    visit(ref.blob, ShardEntry{.first_record = ref.first_record,
                               .item = ObjectItem(i),
                               .raw_size = object.size(),
                               .region_digest = {}});
  }
}

ShardMap::ShardMap(const metadata::Metadata& index, const std::vector<std::uint8_t>& wanted_blobs)
    : index_(&index), begins_(index.blob_count() + 1) {
  // The index pins how many shards each blob has (R-IDX-21), so each goes to its place at once.
  for (std::size_t b = 0; b < index.blob_count(); ++b) {
    begins_[b + 1] = begins_[b] + (wanted_blobs[b] ? index.blob(b).shard_count : 0);
  }
  shards_.resize(begins_.back());
  std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
  ForEachShard(wanted_blobs,
               [&](std::uint32_t blob, const ShardEntry& shard) { shards_[next[blob]++] = shard; });
  for (std::size_t b = 0; b < index.blob_count(); ++b) {
    std::sort(
        shards_.begin() + static_cast<std::ptrdiff_t>(begins_[b]),
        shards_.begin() + static_cast<std::ptrdiff_t>(begins_[b + 1]),
        [](const ShardEntry& x, const ShardEntry& y) { return x.first_record < y.first_record; });
  }
}

std::span<const ShardEntry> ShardMap::OfBlob(std::size_t blob) const {
  return std::span(shards_).subspan(begins_[blob], begins_[blob + 1] - begins_[blob]);
}

Status ShardMap::AtItemOf(const ShardEntry& shard, Status error) const {
  if ((shard.item & kObjectBit) != 0) {
    return std::move(error).AtObject(index_->object(shard.item & ~kObjectBit).name());
  }
  return std::move(error).AtTensor(index_->tensor(shard.item).name());
}

std::uint32_t ShardMap::ElementSizeOf(const ShardEntry& shard) const {
  if ((shard.item & kObjectBit) != 0) return 1;
  return index_->tensor(shard.item).element_size();
}

Region ShardMap::ElementsOf(const ShardEntry& shard, std::uint64_t chunk) const {
  const metadata::TensorView tensor = TensorOf(shard);
  const std::uint64_t elements = tensor.chunk_size() / tensor.element_size();
  const Region& region = regions_[shard.region];
  return layout::SubRun(region, chunk * elements,
                        std::min((chunk + 1) * elements, region.element_count()));
}

format::ShardShape ShardMap::ShapeOf(const ShardEntry& shard) const {
  const std::uint64_t chunk_size = (shard.item & kObjectBit) != 0
                                       ? index_->object(shard.item & ~kObjectBit).chunk_size()
                                       : index_->tensor(shard.item).chunk_size();
  return {.raw_size = shard.raw_size, .chunk_size = chunk_size};
}

}  // namespace sealpoint::internal::verify
