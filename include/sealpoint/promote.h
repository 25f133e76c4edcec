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
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"

namespace sealpoint {

struct PromoteOptions {
  std::shared_ptr<Storage> from_storage{};  // DefaultStorage() if null
  std::shared_ptr<Storage> to_storage{};    // DefaultStorage() if null
  // The blobs that this process copies. Nothing: all that `from` has.
  std::optional<std::vector<BlobId>> blobs{};
  int threads = 2;  // that copy; at most kThreadsMax, and no more than there are blobs
  // What all threads together hold of payload; at least 4 KiB for each.
  std::uint64_t memory_budget_bytes = 16 * kMiB;
  // How long to wait, once the own blobs are copied, for those that other processes copy; kForever:
  // no limit.
  std::chrono::milliseconds deadline = kDefaultBackgroundDeadline;
  Limits limits{};
  // Called with the bytes copied so far, on any thread, one call at a time. One that returns false
  // or throws ends the promotion with Cancelled.
  std::function<bool(std::uint64_t bytes_copied)> on_progress{};
};

struct PromoteReport {
  AttemptId attempt{};
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t blobs_copied = 0;  // by this process
  std::uint64_t bytes_copied = 0;
  std::uint64_t blobs_found = 0;  // of its own that were there, whole, and so were not copied
  bool was_committed = false;     // `to` held the checkpoint when this process began
};

// Copies a committed checkpoint to another directory, which may be of another storage: the same
// attempt, blobs, index and marker, byte for byte (spec/staged.md). Each byte is
// verified between reading and writing; a blob gets its name when it is whole and durable; the
// marker is published last, exclusively. So `to` holds the checkpoint or nothing that counts as
// one, and whoever calls again goes on: blobs that are there are not copied again.
//
// Any number of processes may promote the same checkpoint at the same time, each the blobs that its
// own `from` has: whoever sees all blobs in `to` publishes; the others find the marker. They need
// no communicator. Returns when `to` is committed, durably. What crashes left there is removed.
//
// Errors: those of Checkpoint::Open for `from`, but for blobs that are not in it; Corrupt (a
// damaged blob: rule and offset; or `to` has another file under a blob's name), AlreadyExists (`to`
// has another marker, perhaps a void one), Incomplete (R-STG-10: another process gave up a blob,
// and says why; what this one copied stays), Timeout (the blobs of other processes did not come;
// names the first that is missing), Unsupported (no exclusive publication there), NoSpace, Io,
// Cancelled, InvalidArgument (options; R-STG-12: `from` and `to` are one directory, or one is
// within the other). `from` is never changed. After an error of the publication OutcomeIsUnknown
// may be true; calling again finds out.
SEALPOINT_EXPORT Result<PromoteReport> Promote(const std::string& from, const std::string& to,
                                               const PromoteOptions& options = {});

}  // namespace sealpoint

#endif  // SEALPOINT_PROMOTE_H_
