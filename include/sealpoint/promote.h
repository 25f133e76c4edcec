// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_PROMOTE_H_
#define SEALPOINT_PROMOTE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint {

struct PromoteOptions {
  std::shared_ptr<Storage> from_storage{};  // DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  // Blobs that this process copies. Absent: all blobs in `from`.
  std::optional<std::vector<BlobId>> blobs{};
  int threads = kThreadsAuto;  // copy threads, at most one per blob; kThreadsAuto: 2
  // Maximum payload in memory for all threads together; at least 4 KiB per thread.
  std::uint64_t memory_budget_bytes = 16 * kMiB;
  // Maximum time to wait for the blobs of other processes after this process has copied its own
  // blobs; kForever: no limit.
  std::chrono::milliseconds deadline = kDefaultBackgroundDeadline;
  Limits limits{};
  PhaseCallback on_progress{};  // kCopy: bytes copied by this process; the total is 0
};

struct PromoteReport {
  AttemptId attempt{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t blobs_copied = 0;  // by this process
  std::uint64_t bytes_copied = 0;
  std::uint64_t blobs_found = 0;  // blobs of this process that were already copied
  bool was_committed = false;     // `to` was already committed when the call began
};

// Copies a committed checkpoint to a different directory, which may be in a different storage. The
// copy has the same attempt, blobs, index and marker, byte for byte (spec/staged.md). Each byte is
// verified after it is read and before it is written. A blob gets its final name only once it is
// complete and durable. The marker is published exclusively, after all blobs, so `to` is never a
// partial checkpoint. After an error, call again to continue; blobs that are already in `to` are
// not copied again. `from` is never changed.
//
// Any number of processes may promote the same checkpoint simultaneously, without a communicator.
// Each process copies the blobs in its own `from`. The first process that finds all blobs in `to`
// publishes the marker; the other processes then find this marker. Each call removes the files that
// crashed calls left in `to`, and returns once `to` is durably committed.
//
// If publication fails, OutcomeIsUnknown may be true; call again to find out. Blobs may be missing
// in `from`. Errors: the other errors of Checkpoint::Open for `from`, and
// - Corrupt: a blob is damaged, or `to` has a different file under a blob's name;
// - AlreadyExists: `to` has a different marker, possibly a void marker;
// - Incomplete (R-STG-10): another process could not copy a blob, and recorded the reason;
// - Timeout: blobs of other processes are missing; the error names the first one;
// - Unsupported: the destination has no exclusive publication;
// - InvalidArgument: the options, or (R-STG-12) `from` and `to` are the same or nested;
// - NoSpace, Io, Cancelled.
SEALPOINT_EXPORT Result<PromoteReport> Promote(const CopyPaths& paths,
                                               const PromoteOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_PROMOTE_H_
