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
  AttemptId attempt{};  // zero: a fresh random id
  std::uint64_t step = kNoStep;
  std::optional<ParentRef> parent{};
  MeshAxes mesh{};              // provenance only
  ProvenanceList provenance{};  // unique keys, "sealpoint." is reserved; values are UTF-8
  // A checkpoint without tensors and objects is refused (InvalidArgument): usually the
  // program forgot to declare, or to add, anything.
  bool allow_empty = false;
  Limits limits{};
  PhaseCallback on_phase{};
  // Blobs may have been written for another attempt: those of an older checkpoint that the caller
  // linked into this directory, which it synced afterwards. Without it such a blob is an error,
  // since mostly it is the summary of an attempt that failed.
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
  // Blobs that were written for another attempt, which this one links; the bytes of their files.
  std::uint64_t reused_blob_count = 0;
  std::uint64_t reused_bytes = 0;
  PhaseReport report{};  // of this process

  ParentRef as_parent() const { return {attempt, sequence}; }
};

// Makes the blobs of these summaries one checkpoint, or does nothing. Exactly one process calls it,
// when all blobs are finished. Follows spec/commit.md: every blob is stat'ed, the index is built,
// passes the reader's whole check, and is written and synced; the marker is written, synced and
// published exclusively; the directory is synced around the publication.
//
// Errors: InvalidArgument (holes, overlaps, disagreeing declarations; tensor and blobs are named;
// nothing to commit, a blob of another attempt), AlreadyExists (the directory has a marker),
// Incomplete (a blob is missing or short), Unsupported (no exclusive publication here; a blob with
// features that this version does not know), LimitExceeded, NoSpace, Io. On an error before
// publication its own files are removed, the blobs stay. If the outcome of the publication could
// not be established by reading the marker back, OutcomeIsUnknown(error) is true and nothing was
// removed. Durability: after success the checkpoint survives a crash.
SEALPOINT_EXPORT Result<CommitInfo> Commit(Storage& storage, const std::string& directory,
                                           const CommitOptions& options,
                                           std::span<const BlobSummary> summaries);

// True for the error of a commit or save of which nobody can say whether it took effect: look at
// the directory later; do not delete anything.
SEALPOINT_EXPORT bool OutcomeIsUnknown(const Status& error);

// Reads a summary back from a finished blob; verifies header, trailer and manifest.
// Errors: NotFound, Incomplete (too short to be a blob), NotACheckpoint, Corrupt, Unsupported,
// LimitExceeded, Io. That the blob is durable, its writer must have said (R-CMT-25).
SEALPOINT_EXPORT Result<BlobSummary> ReadSummary(const Storage& storage,
                                                 const std::string& directory, const BlobId& blob,
                                                 const Limits& limits = {});

// Ids of the files in a directory whose names are those of blobs, ascending.
SEALPOINT_EXPORT Result<std::vector<BlobId>> ListBlobs(const Storage& storage,
                                                       const std::string& directory);

}  // namespace sealpoint

#endif  // SEALPOINT_COMMIT_H_
