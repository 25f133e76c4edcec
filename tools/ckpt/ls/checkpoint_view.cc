// SPDX-License-Identifier: Apache-2.0
#include "tools/ckpt/ls/checkpoint_view.h"

#include <utility>

#include "tools/common/limits.h"

namespace sealpoint::tools::ls {

Result<CheckpointView> ViewCheckpoint(const std::string& path) {
  Result<VerifyReport> report =
      Verify(path, {.level = VerifyLevel::kFiles, .limits = TypedLimits()});
  if (!report) return std::move(report).error();
  CheckpointView view{.report = std::move(*report)};
  // Missing blobs are among the violations; the rest can be shown all the same.
  Result<std::unique_ptr<Checkpoint>> checkpoint =
      Checkpoint::Open(path, {.limits = TypedLimits(), .check_files = false});
  if (!checkpoint) {
    // Marker and index were read before: what keeps them from being read now is no violation.
    const bool is_new = VerdictOf(checkpoint.error()) != view.report.verdict &&
                        view.report.verdict != Verdict::kUnreadable;
    if (is_new) return std::move(checkpoint).error();
    return view;
  }
  view.checkpoint = std::move(*checkpoint);
  for (std::size_t i = 0; i < view.checkpoint->tensor_count(); ++i) {
    const TensorInfo tensor = view.checkpoint->tensor(i);
    view.shard_count += tensor.shard_count;
    view.tensor_bytes += tensor.raw_bytes;
  }
  for (std::size_t i = 0; i < view.checkpoint->object_count(); ++i) {
    view.object_bytes += view.checkpoint->object(i).size_bytes;
  }
  for (const BlobInfo& blob : view.checkpoint->blobs()) view.blob_bytes += blob.file_size_bytes;
  return view;
}

namespace {

CorruptionState CorruptionStateOf(const SeriesEntry& entry) {
  CorruptionState found;
  if (entry.verdict != Verdict::kCommitted) return found;
  const auto opened = Checkpoint::Open(entry.path, {.limits = TypedLimits(), .check_files = false});
  if (!opened) return found;  // deleted meanwhile
  for (const auto& [key, value] : (*opened)->provenance()) {
    if (key == "sdc.state") found.state = value;
    if (key == "sdc.upto") found.upto = value;
  }
  return found;
}

}  // namespace

Result<SeriesView> ViewSeries(const std::string& path) {
  Result<SeriesListing> listing = Series(path).List();
  if (!listing) return std::move(listing).error();
  SeriesView view{.path = path, .listing = std::move(*listing)};
  for (SeriesEntry& entry : view.listing.entries) {
    if (entry.verdict != Verdict::kCommitted) continue;
    const Result<VerifyReport> report =
        Verify(entry.path, {.level = VerifyLevel::kFiles, .limits = TypedLimits()});
    if (!report) return report.error();
    entry.verdict = report->verdict;
    if (!report->violations.empty()) entry.problem = report->violations.front();
  }
  for (const SeriesEntry& entry : view.listing.entries) {
    view.corruption.push_back(CorruptionStateOf(entry));
  }
  // Listing them may take a permission that reading does not.
  Result<std::vector<UnfinishedFile>> unfinished = Series(path).ListUnfinished();
  view.unfinished_problem = unfinished.status();
  if (unfinished) view.unfinished = *std::move(unfinished);
  return view;
}

}  // namespace sealpoint::tools::ls
