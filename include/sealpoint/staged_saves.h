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

// Saves that are committed on local storage, such as a disk of each node, and promoted to their
// final place behind the training (spec/staged.md). Begun by SaveTarget::Staged.

namespace sealpoint {

// The copying of one staged save, as one rank sees it.
struct Promotion {
  std::string directory{};  // the final one
  std::uint64_t step = 0;
  // Success: the final checkpoint is committed and durable. Else it is not, as far as this rank
  // knows, and the local one is there.
  Status status{};
  std::uint64_t bytes_copied = 0;  // by this rank
};

struct ResumePromotionsOptions {
  std::shared_ptr<Storage> storage{};             // of both places; DefaultStorage() if null
  int threads = 2;                                // per rank
  std::uint64_t memory_budget_bytes = 16 * kMiB;  // see PromoteOptions
  int keep_local = 0;                             // see SaverOptions
  std::chrono::milliseconds deadline = kDefaultBackgroundDeadline;
  Limits limits{};
};

struct ResumedPromotions {
  std::vector<std::string> promoted{};   // names of directories, newest first
  std::vector<Promotion> passed_over{};  // not whole on the nodes that are here, or failed
};

// The copies of a series in a local place, as SaveTarget::Staged makes them.
struct StagedCopies {
  std::string folder{};                 // below the local place, whether it is there or not
  std::string series{};                 // the final place, without links
  std::optional<std::string> record{};  // the series that the folder says it is of
};

// Where the copies of a series lie. Errors: InvalidArgument (R-STG-12: the two places are one, or
// one is within the other), Io.
SEALPOINT_EXPORT Result<StagedCopies> FindStagedCopies(const std::string& local,
                                                       const std::string& final_series,
                                                       std::shared_ptr<Storage> storage = {});

// Finishes what a job that ended left on local storage, so that the final series has the newest
// whole checkpoint of both places: each one that is newer than those of the final series and whole
// over all nodes together is promoted. Call it before OpenNewest of the final series; on any number
// of ranks, and beside promotions of an old job that is still alive. Collective: all ranks name the
// same final series; `local` may differ. Only copies of this series are promoted and removed
// (FindStagedCopies). What else lies in the local place stays; it is passed over, with the way out,
// if it has no record of a series, or that of another place whose lineage this series has
// (R-STG-13). A checkpoint of which a node is missing is passed over, with the reason; the answer
// is the same on all ranks. Errors: those of listing the final series, InvalidArgument (R-STG-12),
// Comm, Timeout.
SEALPOINT_EXPORT Result<ResumedPromotions> ResumePromotions(
    Communicator& comm, const std::string& local, const std::string& final_series,
    const ResumePromotionsOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_STAGED_SAVES_H_
