// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/checkpoint.h"

#include <algorithm>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/phase_recorder.h"
#include "readers/load/checkpoint_impl.h"
#include "readers/load/selection.h"

namespace sealpoint {

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path, OpenOptions options) {
  SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint,
                             internal::CheckpointImpl::Make(path, std::move(options), {}));
  return checkpoint;
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::OpenFrom(const std::string& path, Bytes marker,
                                                         Bytes index, OpenOptions options) {
  SEALPOINT_ASSIGN_OR_RETURN(
      std::unique_ptr<Checkpoint> checkpoint,
      internal::CheckpointImpl::Make(
          path, std::move(options),
          internal::GivenFiles{.marker = std::move(marker), .index = std::move(index)}));
  return checkpoint;
}

std::vector<TensorInfo> Checkpoint::tensors() const {
  std::vector<TensorInfo> all;
  all.reserve(tensor_count());
  for (std::size_t i = 0; i < tensor_count(); ++i) all.push_back(tensor(i));
  return all;
}

std::vector<ObjectInfo> Checkpoint::objects() const {
  std::vector<ObjectInfo> all;
  all.reserve(object_count());
  for (std::size_t i = 0; i < object_count(); ++i) all.push_back(object(i));
  return all;
}

Result<LoadReport> Checkpoint::Load(const ReadRequest& request, const LoadContract& contract,
                                    const ReadOptions& options) const {
  internal::PhaseRecorder phases(options.on_phase);
  phases.Begin(Phase::kPlanRead);
  Result<ReadPlan> plan = Plan(request, contract);
  phases.End();
  if (!plan) return std::move(plan).error();
  if (!phases.failure().ok()) return phases.failure();
  SEALPOINT_ASSIGN_OR_RETURN(LoadReport report, Read(*plan, options));
  report.phases.phases.insert(report.phases.phases.begin(), phases.report().phases.begin(),
                              phases.report().phases.end());
  return report;
}

namespace internal {
namespace {

// Adds up the chunk records of a tensor, some at a time.
class ChunkCounter {
 public:
  ChunkCounter(BlobTables& tables, const TensorView& tensor) : tables_(tables), tensor_(tensor) {}

  Status CountAll() {
    Status status;
    tensor_.ForEachShard([&](std::size_t shard, const Region& region) {
      if (status.ok()) status = CountShard(tensor_.shard_ref(shard), region.element_count());
    });
    return status;
  }
  StoredChunks counts() && { return std::move(counts_); }

 private:
  Status CountShard(const ShardRef& shard, std::uint64_t element_count) {
    constexpr std::uint64_t kRecordsAtOnce = 1 << 14;
    const ShardShape shape{.raw_size = element_count * tensor_.element_size(),
                           .chunk_size = tensor_.chunk_size()};
    const std::uint64_t chunk_count = ChunkCount(shape.raw_size, shape.chunk_size);
    for (std::uint64_t first = 0; first < chunk_count; first += kRecordsAtOnce) {
      const std::uint64_t count = std::min(kRecordsAtOnce, chunk_count - first);
      std::uint64_t bytes_read = 0;
      SEALPOINT_ASSIGN_OR_RETURN(const std::vector<ChunkRecord> records,
                                 tables_.Load({.shard = shard,
                                               .shape = shape,
                                               .first_chunk = static_cast<std::uint32_t>(first),
                                               .count = static_cast<std::uint32_t>(count)},
                                              bytes_read));
      for (const ChunkRecord& record : records) Count(record);
    }
    return {};
  }

  void Count(const ChunkRecord& record) {
    ++counts_.chunk_count;
    counts_.raw_bytes += record.raw_size;
    counts_.stored_bytes += record.stored_size;
    const auto at = std::ranges::lower_bound(counts_.codecs, record.codec, {},
                                             &StoredChunks::CodecCount::codec);
    if (at != counts_.codecs.end() && at->codec == record.codec) {
      ++at->chunk_count;
    } else {
      counts_.codecs.insert(at, {.codec = record.codec, .chunk_count = 1});
    }
  }

  BlobTables& tables_;
  const TensorView tensor_;
  StoredChunks counts_;
};

}  // namespace

std::vector<std::pair<std::string, std::uint32_t>> CheckpointImpl::mesh() const {
  return index().mesh();
}

std::vector<std::pair<std::string, std::string>> CheckpointImpl::provenance() const {
  return index().provenance();
}

std::vector<BlobInfo> CheckpointImpl::blobs() const {
  std::vector<BlobInfo> all;
  all.reserve(index().blob_count());
  for (std::size_t i = 0; i < index().blob_count(); ++i) {
    const BlobPin pin = index().blob(i);
    all.push_back(
        {.id = pin.id, .file_size_bytes = pin.file_size, .chunk_count = pin.record_count});
  }
  return all;
}

TensorInfo CheckpointImpl::tensor(std::size_t i) const {
  SEALPOINT_CHECK(i < index().tensor_count());
  const TensorView view = index().tensor(i);
  return {.name = std::string(view.name()),
          .dtype = view.dtype(),
          .element_size = view.element_size(),
          .shape = view.shape(),
          .chunk_size_bytes = view.chunk_size(),
          .raw_bytes = view.element_count() * view.element_size(),
          .shard_count = view.shard_count(),
          .placement = view.placement()};
}

std::optional<TensorInfo> CheckpointImpl::FindTensor(std::string_view name) const {
  const std::optional<std::size_t> found = index().FindTensor(name);
  if (!found) return std::nullopt;
  return tensor(*found);
}

std::vector<TensorInfo> CheckpointImpl::TensorsWithPrefix(std::string_view prefix) const {
  const TensorRange range = internal::TensorsWithPrefix(index(), prefix);
  std::vector<TensorInfo> found;
  found.reserve(range.end - range.begin);
  for (std::size_t i = range.begin; i < range.end; ++i) found.push_back(tensor(i));
  return found;
}

Result<std::vector<TensorInfo>> CheckpointImpl::MatchTensors(
    const std::vector<std::string>& patterns) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::size_t> numbers,
                             internal::MatchTensors(index(), patterns));
  std::vector<TensorInfo> found;
  found.reserve(numbers.size());
  for (const std::size_t i : numbers) found.push_back(tensor(i));
  return found;
}

ObjectInfo CheckpointImpl::object(std::size_t i) const {
  SEALPOINT_CHECK(i < index().object_count());
  const ObjectView view = index().object(i);
  return {.name = std::string(view.name()),
          .media_type = std::string(view.media_type()),
          .size_bytes = view.size()};
}

std::optional<ObjectInfo> CheckpointImpl::FindObject(std::string_view name) const {
  const std::optional<std::size_t> found = index().FindObject(name);
  if (!found) return std::nullopt;
  return object(*found);
}

Result<std::vector<ObjectInfo>> CheckpointImpl::MatchObjects(
    const std::vector<std::string>& patterns) const {
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::size_t> numbers,
                             internal::MatchObjects(index(), patterns));
  std::vector<ObjectInfo> found;
  found.reserve(numbers.size());
  for (const std::size_t i : numbers) found.push_back(object(i));
  return found;
}

Result<StoredChunks> CheckpointImpl::TensorChunks(std::string_view tensor) const {
  const std::optional<std::size_t> found = index().FindTensor(tensor);
  if (!found) {
    return MakeError(Code::kNotFound, "the checkpoint has no such tensor").AtTensor(tensor);
  }
  ChunkCounter counter(tables_, index().tensor(*found));
  if (Status status = counter.CountAll(); !status.ok()) {
    return std::move(status).AtTensor(tensor);
  }
  return std::move(counter).counts();
}

Result<std::vector<ShardInfo>> CheckpointImpl::Shards(std::string_view tensor) const {
  const std::optional<std::size_t> found = index().FindTensor(tensor);
  if (!found) {
    return MakeError(Code::kNotFound, "the checkpoint has no such tensor").AtTensor(tensor);
  }
  const TensorView view = index().tensor(*found);
  std::vector<Region> regions = view.regions();
  std::vector<ShardInfo> shards;
  shards.reserve(regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) {
    shards.push_back(
        {.region = std::move(regions[i]), .blob = index().blob(view.shard_ref(i).blob).id});
  }
  return shards;
}

}  // namespace internal
}  // namespace sealpoint
