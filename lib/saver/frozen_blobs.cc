// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/frozen_blobs.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/container/blob_tables.h"
#include "lib/format/constants.h"
#include "lib/saver/replica_digests.h"
#include "lib/writer/blob_summary_parts.h"
#include "lib/writer/tensor_checks.h"
#include "sealpoint/commit.h"
#include "sealpoint/digest.h"

namespace sealpoint::internal::saver {
namespace {

// What the parent's index says of the blobs that hold a group.
struct BlobUse {
  std::uint64_t record_count = 0;
  std::set<std::size_t> tensors{};
};
using BlobUses = std::map<std::uint32_t, BlobUse>;

bool IsStoredAs(const metadata::TensorView& stored, const TensorSpec& tensor) {
  return stored.dtype() == tensor.dtype && stored.element_size() == writer::ElementSize(tensor) &&
         stored.shape() == tensor.shape && stored.chunk_size() == tensor.chunk_size_bytes &&
         stored.placement() == tensor.placement &&
         stored.attributes() == tensor.attributes.encoded();
}

// The stored shards that have elements of `region`, in its order; nothing if one is of another box.
// Whether they are cut at chunk borders and no longer than it, the digests of their chunks tell.
std::optional<std::vector<std::pair<std::size_t, Region>>> PartsOf(
    const metadata::TensorView& stored, const Region& region) {
  std::vector<std::pair<std::size_t, Region>> parts;
  for (auto& [number, part] : stored.ShardsTouching(region.box)) {
    if (part.box != region.box) return std::nullopt;
    const bool is_outside = part.run.end <= region.run.begin || region.run.end <= part.run.begin;
    if (!is_outside) parts.emplace_back(number, std::move(part));
  }
  std::ranges::sort(parts, {}, [](const auto& part) { return part.second.run.begin; });
  return parts;
}

// Adds the blobs of a shard to `uses`, if the parent stores exactly this content.
Result<bool> HasShard(const metadata::Metadata& index, container::BlobTables& tables,
                      const FrozenGroup::ShardContent& shard, BlobUses& uses) {
  const std::optional<std::size_t> number = index.FindTensor(shard.tensor.name);
  if (!number) return false;
  const metadata::TensorView stored = index.tensor(*number);
  if (!IsStoredAs(stored, shard.tensor)) return false;
  const auto parts = PartsOf(stored, shard.region);
  if (!parts) return false;
  std::vector<Digest> chunks;
  std::uint64_t table_bytes = 0;
  for (const auto& [part, region] : *parts) {
    const metadata::ShardRef ref = stored.shard_ref(part);
    const format::ShardShape shape{.raw_size = region.element_count() * stored.element_size(),
                                   .chunk_size = stored.chunk_size()};
    const std::uint64_t count = metadata::ChunkCount(shape.raw_size, shape.chunk_size);
    SEALPOINT_ASSIGN_OR_RETURN(
        const std::vector<format::ChunkRecord> records,
        tables.Load({.shard = ref, .shape = shape, .count = static_cast<std::uint32_t>(count)},
                    table_bytes));
    for (const format::ChunkRecord& record : records) chunks.push_back(record.raw_digest);
    BlobUse& use = uses[ref.blob];
    use.record_count += count;
    use.tensors.insert(*number);
  }
  return CombineDigests(chunks) == shard.content;
}

// The summaries of blobs that hold what was found and nothing else; nothing if one holds more.
Result<std::vector<BlobSummary>> SummariesOf(const Storage& storage, const std::string& directory,
                                             const metadata::Metadata& index, const BlobUses& uses,
                                             const Limits& limits) {
  std::vector<BlobSummary> summaries;
  for (const auto& [number, use] : uses) {
    const metadata::BlobPin pin = index.blob(number);
    if (pin.record_count != use.record_count) return std::vector<BlobSummary>();
    SEALPOINT_ASSIGN_OR_RETURN(BlobSummary summary,
                               ReadSummary(storage, directory, pin.id, limits));
    const writer::DecodedSummary& decoded = *InternalAccess::DecodedOf(summary);
    const bool holds_more = decoded.manifest.tensor_count() != use.tensors.size() ||
                            decoded.manifest.object_count() != 0;
    if (decoded.pin != pin || holds_more) return std::vector<BlobSummary>();
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

// Empty if the parent has the group not at all, otherwise, or beside something else.
Result<std::vector<BlobSummary>> FindBlobs(const Storage& storage, const std::string& directory,
                                           const container::CommittedFiles& parent,
                                           const FrozenGroup& group, const Limits& limits) {
  const metadata::Metadata& index = parent.index.metadata;
  if (index.base()) return std::vector<BlobSummary>();  // what its blobs hold needs the base
  container::BlobTables tables(*parent.directory, index);
  BlobUses uses;
  for (const FrozenGroup::ShardContent& shard : group.shards) {
    SEALPOINT_ASSIGN_OR_RETURN(const bool has_it, HasShard(index, tables, shard, uses));
    if (!has_it) return std::vector<BlobSummary>();
  }
  return SummariesOf(storage, directory, index, uses, limits);
}

// A link to a file that lost bytes would fail the commit (R-CMT-02), where a blob that is written
// is whole.
Status LinkBlob(Directory& directory, const std::string& from, const BlobSummary& summary,
                std::uint64_t name_count_max) {
  const std::string name = format::BlobName(summary.blob());
  SEALPOINT_RETURN_IF_ERROR(directory.LinkFrom(from, name, name_count_max));
  const auto linked = directory.Stat(name);
  if (linked.ok() && linked->size_bytes == summary.file_size_bytes()) return {};
  static_cast<void>(directory.Remove(name));
  return Status(Code::kIncomplete, "the file is incomplete");
}

}  // namespace

Digest FrozenGroup::ComputeKey() const {
  Bytes message;
  WireWriter out(message);
  for (const ShardContent& shard : shards) {
    out.Put(shard.tensor.name);
    out.Put(std::uint64_t{static_cast<std::uint16_t>(shard.tensor.dtype)});
    out.Put(std::uint64_t{writer::ElementSize(shard.tensor)});
    out.Put(shard.tensor.chunk_size_bytes);
    out.Put(std::uint64_t{shard.tensor.shape.size()});
    out.PutAll(shard.tensor.shape);
    out.Put(std::uint64_t{shard.tensor.placement.size()});
    for (const std::string& label : shard.tensor.placement) out.Put(label);
    out.Put(shard.tensor.attributes.encoded());
    out.PutAll(shard.region.box.offset);
    out.PutAll(shard.region.box.extent);
    out.PutAll(std::array{shard.region.run.begin, shard.region.run.end});
    out.Put(shard.content);
  }
  return ComputeDigest(message);
}

// What cannot be read, found or linked is written, as if there were no parent.
Result<FrozenBlobs::Linked> FrozenBlobs::Link(const Storage& storage, const Attempt& attempt,
                                              const SaverOptions& options, const FrozenGroup& group,
                                              OpenedParent& parent) {
  if (attempt.parent_directory.empty() || !attempt.parent) return Linked();
  const auto directory = storage.OpenDirectory(attempt.parent_directory);
  if (!directory.ok()) return Linked();
  Linked linked{.key = group.ComputeKey()};
  const auto known = by_key_.find(linked.key);
  std::vector<BlobSummary> blobs;
  if (remembered_ == attempt.parent->attempt && known != by_key_.end()) {
    blobs = known->second;
  } else {
    if (!parent) {
      parent = container::OpenCommitted(storage, attempt.parent_directory, options.limits,
                                        /*check_files=*/false);
    }
    if (!parent->ok()) return Linked();
    blobs = FindBlobs(storage, attempt.parent_directory, **parent, group, options.limits)
                .value_or(std::vector<BlobSummary>());
  }
  const auto name_count_max = static_cast<std::uint64_t>(options.frozen_full_every);
  for (const BlobSummary& blob : blobs) {
    if (!LinkBlob(*attempt.opened, (*directory)->path(), blob, name_count_max).ok()) break;
    linked.summaries.push_back(blob);
  }
  Status synced;
  if (linked.summaries.size() == blobs.size()) {
    if (!blobs.empty()) synced = attempt.opened->Sync();
    if (synced.ok()) return linked;
  }
  RemoveLinks(*attempt.opened, linked.summaries);
  SEALPOINT_RETURN_IF_ERROR(synced);
  return Linked();
}

void FrozenBlobs::Remember(const AttemptId& attempt, const std::vector<Linked>& linked) {
  remembered_ = attempt;
  by_key_.clear();
  for (const Linked& group : linked) by_key_[group.key] = group.summaries;
}

void RemoveLinks(Directory& directory, const std::vector<BlobSummary>& linked) {
  for (const BlobSummary& summary : linked) {
    static_cast<void>(directory.Remove(format::BlobName(summary.blob())));
  }
}

}  // namespace sealpoint::internal::saver
