// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/checkpoint.h"

#include <utility>

#include "lib/base/macros.h"
#include "lib/observe/phase_recorder.h"
#include "readers/load/checkpoint_impl.h"

namespace sealpoint {

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path, OpenOptions options) {
  SEALPOINT_ASSIGN_OR_RETURN(std::unique_ptr<Checkpoint> checkpoint,
                             internal::load::CheckpointImpl::Make(path, std::move(options), {}));
  return checkpoint;
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::OpenFrom(const std::string& path, Bytes marker,
                                                         Bytes index, OpenOptions options) {
  SEALPOINT_ASSIGN_OR_RETURN(
      std::unique_ptr<Checkpoint> checkpoint,
      internal::load::CheckpointImpl::Make(
          path, std::move(options),
          internal::container::GivenFiles{.marker = std::move(marker), .index = std::move(index)}));
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
  internal::observe::PhaseRecorder phases(options.on_progress);
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

}  // namespace sealpoint
