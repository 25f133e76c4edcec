// SPDX-License-Identifier: Apache-2.0
#include "lib/compare/chunk_compare.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "lib/base/macros.h"
#include "lib/layout/region_algebra.h"

namespace sealpoint::internal::compare {
namespace {

// The same bytes in both, cut alike.
struct TwoShards {
  const load::CheckpointImpl& first;
  metadata::ShardRef first_ref;
  const load::CheckpointImpl& second;
  metadata::ShardRef second_ref;
  format::ShardShape shape;
};

// Calls `visit` with the number of each chunk whose digests differ.
Status ForEachChange(const TwoShards& shards, std::uint64_t& table_bytes_read,
                     const std::function<void(std::uint64_t)>& visit) {
  constexpr std::uint64_t kRecordsAtOnce = 1 << 14;  // 1 MiB
  const std::uint64_t chunk_count =
      metadata::ChunkCount(shards.shape.raw_size, shards.shape.chunk_size);
  for (std::uint64_t begin = 0; begin < chunk_count; begin += kRecordsAtOnce) {
    container::ShardChunks chunks{
        .shard = shards.first_ref,
        .shape = shards.shape,
        .first_chunk = static_cast<std::uint32_t>(begin),
        .count = static_cast<std::uint32_t>(std::min(kRecordsAtOnce, chunk_count - begin))};
    SEALPOINT_ASSIGN_OR_RETURN(const auto a, shards.first.ChunkRecords(chunks, table_bytes_read));
    chunks.shard = shards.second_ref;
    SEALPOINT_ASSIGN_OR_RETURN(const auto b, shards.second.ChunkRecords(chunks, table_bytes_read));
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i].raw_digest != b[i].raw_digest) visit(begin + i);
    }
  }
  return {};
}

}  // namespace

Result<ChunkComparison> CompareChunks(const load::CheckpointImpl& first, std::size_t first_tensor,
                                      const load::CheckpointImpl& second,
                                      std::size_t second_tensor) {
  const metadata::TensorView a = first.index().tensor(first_tensor);
  const metadata::TensorView b = second.index().tensor(second_tensor);
  ChunkComparison found;
  if (a.chunk_size() != b.chunk_size()) {
    found.unknown = a.regions();
    return found;
  }
  std::map<Region, std::size_t> others;
  b.ForEachShard(
      [&](std::size_t shard, Region region) { others.emplace(std::move(region), shard); });
  const std::uint64_t chunk_elements = a.chunk_size() / a.element_size();
  Status status;
  a.ForEachShard([&](std::size_t shard, const Region& region) {
    if (!status.ok()) return;
    const auto other = others.find(region);
    if (other == others.end()) return found.unknown.push_back(region);
    const std::uint64_t count = region.element_count();
    const TwoShards shards{first,
                           a.shard_ref(shard),
                           second,
                           b.shard_ref(other->second),
                           {.raw_size = count * a.element_size(), .chunk_size = a.chunk_size()}};
    status = ForEachChange(shards, found.table_bytes_read, [&](std::uint64_t chunk) {
      const std::uint64_t begin = chunk * chunk_elements;
      found.changed.push_back(
          layout::SubRun(region, begin, std::min(count, begin + chunk_elements)));
    });
  });
  if (!status.ok()) return std::move(status).AtTensor(a.name());
  return found;
}

Result<bool> ObjectsAreEqual(const load::CheckpointImpl& first, const metadata::ObjectView& object,
                             const load::CheckpointImpl& second, const metadata::ObjectView& other,
                             std::uint64_t& table_bytes_read, std::uint64_t& payload_bytes_read) {
  if (object.size() == 0) return true;
  if (object.chunk_size() == other.chunk_size()) {
    bool is_equal = true;
    const TwoShards shards{first,
                           object.shard_ref(),
                           second,
                           other.shard_ref(),
                           {.raw_size = object.size(), .chunk_size = object.chunk_size()}};
    Status status =
        ForEachChange(shards, table_bytes_read, [&](std::uint64_t) { is_equal = false; });
    if (!status.ok()) return std::move(status).AtObject(object.name());
    return is_equal;
  }
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes a, first.ReadObject(object.name()));
  SEALPOINT_ASSIGN_OR_RETURN(const Bytes b, second.ReadObject(other.name()));
  payload_bytes_read += a.size() + b.size();
  return a == b;
}

}  // namespace sealpoint::internal::compare
