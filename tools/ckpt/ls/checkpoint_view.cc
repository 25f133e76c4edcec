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
  // Listing them may take a permission that reading does not.
  Result<std::vector<UnfinishedFile>> unfinished = Series(path).ListUnfinished();
  view.unfinished_problem = unfinished.status();
  if (unfinished) view.unfinished = *std::move(unfinished);
  return view;
}

}  // namespace sealpoint::tools::ls
