// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_STAGED_SAVES_H_
#define SEALPOINT_STAGED_SAVES_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/communicator.h"
#include "sealpoint/deadline.h"
#include "sealpoint/export.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"

// Staged saves are committed on local storage, such as a disk of each node, and promoted to their
// final location in the background (spec/staged.md). SaveTarget::Staged starts one.

namespace sealpoint {

// The promotion of one staged save, as seen by one rank.
struct Promotion {
  std::string directory{};  // final directory
  std::uint64_t step = 0;
  // Success: the final checkpoint is committed and durable. Otherwise this rank does not know it to
  // be committed, and the local checkpoint still exists.
  Status status{};
  std::uint64_t bytes_copied = 0;  // by this rank
};

struct ResumePromotionsOptions {
  std::shared_ptr<Storage> storage{};             // for both locations; DefaultStorage() if null
  int threads = kThreadsAuto;                     // per rank; see PromoteOptions
  std::uint64_t memory_budget_bytes = 16 * kMiB;  // see PromoteOptions
  int keep_local = 0;                             // see SaverOptions
  std::chrono::milliseconds deadline = kDefaultBackgroundDeadline;
  Limits limits{};
};

struct ResumedPromotions {
  std::vector<std::string> promoted{};   // directory names, newest first
  std::vector<Promotion> passed_over{};  // not intact on the participating nodes, or failed
};

// Local copies of a series, as made by SaveTarget::Staged.
struct StagedCopies {
  std::string folder{};                 // below the local directory; may not exist
  std::string series{};                 // final directory, without links
  std::optional<std::string> record{};  // series recorded in the folder
};

// Finds the local copies of a series. Errors: InvalidArgument (R-STG-12: the two directories are
// the same or nested), Io.
SEALPOINT_EXPORT Result<StagedCopies> FindStagedCopies(const std::string& local,
                                                       const std::string& final_series,
                                                       std::shared_ptr<Storage> storage = {});

// Completes the promotions of an earlier job, so that the final series has the newest intact
// checkpoint of both locations. It promotes each checkpoint that is newer than those of the final
// series and intact on all nodes together. Call it before OpenNewest of the final series. The
// number of ranks may differ, and promotions of an old job may still be running.
//
// Collective: all ranks name the same final series; `local` may differ. Only copies of this series
// are promoted and removed (FindStagedCopies); other contents of the local directory are kept. A
// copy is passed over, with a remedy, if it has no record of its series, or the record of another
// location with the same lineage (R-STG-13). A checkpoint with a missing node is passed over, with
// the reason. The result is the same on all ranks. Errors: those of listing the final series,
// InvalidArgument (R-STG-12), Comm, Timeout.
SEALPOINT_EXPORT Result<ResumedPromotions> ResumePromotions(
    Communicator& comm, const std::string& local, const std::string& final_series,
    const ResumePromotionsOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_STAGED_SAVES_H_
