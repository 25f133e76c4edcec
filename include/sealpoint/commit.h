// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_COMMIT_H_
#define SEALPOINT_COMMIT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/blob_writer.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/mesh.h"
#include "sealpoint/phases.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint {

using ProvenanceList = std::vector<std::pair<std::string, std::string>>;

struct CommitOptions {
  AttemptId attempt{};  // zero: a new random id
  std::uint64_t step = kNoStep;
  std::optional<ParentRef> parent{};
  MeshAxes mesh{};              // provenance only
  ProvenanceList provenance{};  // unique keys, "sealpoint." is reserved; values are UTF-8
  // Allows a checkpoint without tensors and objects. By default that is InvalidArgument, because
  // the program probably forgot to declare or add them.
  bool allow_empty = false;
  Limits limits{};
  PhaseCallback on_progress{};
  // Allows blobs that were written for another attempt: blobs of an older checkpoint that the
  // caller linked into this directory before syncing it. By default such a blob is an error,
  // because its summary usually belongs to a failed attempt.
  bool reuses_blobs = false;
};

struct CommitInfo {
  std::string directory{};
  AttemptId attempt{};
  AttemptId parent{};  // zero if none
  std::uint64_t sequence = 0;
  std::uint64_t step = kNoStep;
  std::uint64_t blob_count = 0;
  std::uint64_t tensor_count = 0;
  std::uint64_t raw_bytes = 0;    // of tensors and objects
  std::uint64_t total_bytes = 0;  // of the blobs
  std::uint64_t index_bytes = 0;
  // Linked blobs that were written for another attempt, and the size of their files.
  std::uint64_t reused_blob_count = 0;
  std::uint64_t reused_bytes = 0;
  PhaseReport report{};  // of this process

  ParentRef as_parent() const { return {attempt, sequence}; }
};

// Commits the blobs of these summaries as one checkpoint, or changes nothing. Exactly one process
// calls it, after all blobs are finished. Follows spec/commit.md: it stats every blob; builds the
// index, checks it as a reader does, writes and syncs it; writes and syncs the marker and publishes
// it exclusively; and syncs the directory before and after the publication.
//
// Errors: InvalidArgument (holes, overlaps or conflicting declarations, with tensor and blobs;
// nothing to commit; a blob of another attempt), AlreadyExists (the directory has a marker),
// Incomplete (a blob is missing or short), Unsupported (no exclusive publication on this storage; a
// blob with unknown features), LimitExceeded, NoSpace, Io. After an error before the publication,
// the files made by this call are removed and the blobs are kept. If reading the marker back could
// not establish the outcome of the publication, OutcomeIsUnknown(error) is true and nothing is
// removed. Durability: after success the checkpoint survives a crash.
SEALPOINT_EXPORT Result<CommitInfo> Commit(Storage& storage, const std::string& directory,
                                           const CommitOptions& options,
                                           std::span<const BlobSummary> summaries);

// True if it is unknown whether the commit or save that returned this error took effect. Inspect
// the directory later; do not delete anything.
SEALPOINT_EXPORT bool OutcomeIsUnknown(const Status& error);

// Reads a summary back from a finished blob and verifies header, trailer and manifest. It cannot
// tell whether the blob is durable; its writer must have confirmed that (R-CMT-25). Errors:
// NotFound, Incomplete (too short to be a blob), NotACheckpoint, Corrupt, Unsupported,
// LimitExceeded, Io.
SEALPOINT_EXPORT Result<BlobSummary> ReadSummary(const Storage& storage,
                                                 const std::string& directory, const BlobId& blob,
                                                 const Limits& limits = {});

// Returns the ids of all files in a directory that are named like blobs, in ascending order.
SEALPOINT_EXPORT Result<std::vector<BlobId>> ListBlobs(const Storage& storage,
                                                       const std::string& directory);

}  // namespace sealpoint

#endif  // SEALPOINT_COMMIT_H_
