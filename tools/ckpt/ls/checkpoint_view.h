// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TOOLS_CKPT_LS_CHECKPOINT_VIEW_H_
#define SEALPOINT_TOOLS_CKPT_LS_CHECKPOINT_VIEW_H_

#include <memory>
#include <string>
#include <vector>

#include "sealpoint/checkpoint.h"
#include "sealpoint/series.h"
#include "sealpoint/verify.h"

namespace sealpoint::tools::ls {

// A directory as ckpt ls sees it: checked at the level of files, and open if marker and index
// are good.
struct CheckpointView {
  VerifyReport report;
  std::unique_ptr<Checkpoint> checkpoint;  // null if it cannot be opened

  std::uint64_t shard_count = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t object_bytes = 0;
  std::uint64_t blob_bytes = 0;
};

// Errors: those of Verify.
Result<CheckpointView> ViewCheckpoint(const std::string& path);

// Knowledge of silent data corruption when a checkpoint was saved, from its provenance.
struct CorruptionState {
  std::string state;  // "sdc.state"; empty: unknown
  std::string upto;   // "sdc.upto"
};

// A series with each committed checkpoint checked at the level of files.
struct SeriesView {
  std::string path;
  SeriesListing listing;
  std::vector<CorruptionState> corruption;  // one per entry of the listing
  // Uploads to an object store; empty if they are not known, for this reason.
  std::vector<UnfinishedFile> unfinished;
  Status unfinished_problem;
};

// Errors: those of Series::List.
Result<SeriesView> ViewSeries(const std::string& path);

}  // namespace sealpoint::tools::ls

#endif  // SEALPOINT_TOOLS_CKPT_LS_CHECKPOINT_VIEW_H_
