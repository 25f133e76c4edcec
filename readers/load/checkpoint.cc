// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/checkpoint.h"

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
