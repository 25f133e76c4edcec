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
#include "sealpoint/deadline.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"

namespace sealpoint {

struct PromoteOptions {
  std::shared_ptr<Storage> from_storage{};  // DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  // Blobs that this process copies. Empty optional: all blobs in `from`.
  std::optional<std::vector<BlobId>> blobs{};
  int threads = kThreadsAuto;  // copy threads, at most one per blob; kThreadsAuto: 2
  // Payload that all threads may hold in total; at least 4 KiB per thread.
  std::uint64_t memory_budget_bytes = 16 * kMiB;
  // Maximum time to wait for blobs of other processes after this process has copied its own;
  // kForever: no limit.
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

// Copies a committed checkpoint to another directory, possibly of another storage: the same
// attempt, blobs, index and marker, byte for byte (spec/staged.md). Each byte is verified between
// reading and writing. A blob gets its name once it is complete and durable, and the marker is
// published last and exclusively. `to` is therefore never a partial checkpoint. Call again to
// continue after an error; existing blobs are not copied again. `from` is never changed.
//
// Any number of processes may promote the same checkpoint simultaneously, each with the blobs in
// its own `from`. A process that finds all blobs in `to` publishes; the others find the marker.
// They need no communicator. Returns once `to` is durably committed, and removes leftovers of
// crashed calls there.
//
// Errors: those of Checkpoint::Open for `from`, except for missing blobs; Corrupt (a damaged blob,
// with rule and offset; or `to` has another file under a blob's name), AlreadyExists (`to` has
// another marker, possibly a void one), Incomplete (R-STG-10: another process could not copy a blob
// and recorded the reason; the blobs copied by this one are kept), Timeout (blobs of other
// processes are missing; names the first), Unsupported (no exclusive publication at the
// destination), NoSpace, Io, Cancelled, InvalidArgument (options; R-STG-12: `from` and `to` are the
// same directory or nested). If publication fails, OutcomeIsUnknown may be true; call again to find
// out.
SEALPOINT_EXPORT Result<PromoteReport> Promote(const std::string& from, const std::string& to,
                                               const PromoteOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_PROMOTE_H_
