// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_COMMIT_H_
#define SEALPOINT_COMMIT_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sealpoint/attributes.h"
#include "sealpoint/blob_writer.h"
#include "sealpoint/export.h"
#include "sealpoint/id.h"
#include "sealpoint/limits.h"
#include "sealpoint/phases.h"
#include "sealpoint/placement.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint {

using ProvenanceList = std::vector<std::pair<std::string, std::string>>;

struct CommitOptions {
  AttemptId attempt{};  // zero: a new random id
  std::uint64_t step = kNoStep;
  std::optional<ParentRef> parent{};
  MeshAxes mesh{};              // stored as provenance only
  Attributes attributes{};      // of the checkpoint
  ProvenanceList provenance{};  // keys are unique and do not begin with "sealpoint.", which is
                                // reserved; values are UTF-8
  // Allow a checkpoint without tensors and objects. If false, Commit returns InvalidArgument for an
  // empty checkpoint, because the program probably forgot to declare or add its tensors.
  bool allow_empty = false;
  Limits limits{};
  PhaseCallback on_progress{};
  // Allow blobs that were written for a different attempt: blobs of an older checkpoint that the
  // caller has linked into this directory. The caller must sync the directory after the last link.
  // If false, a blob of a different attempt is an error, because it usually comes from a failed
  // attempt.
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
  std::uint64_t raw_bytes = 0;    // total size of tensors and objects
  std::uint64_t total_bytes = 0;  // size of the blob files
  std::uint64_t index_bytes = 0;
  // Number of linked blobs that were written for a different attempt, and the size of their files.
  std::uint64_t reused_blob_count = 0;
  std::uint64_t reused_bytes = 0;
  PhaseReport report{};  // durations in this process

  ParentRef as_parent() const { return {attempt, sequence}; }
};

// Commits the blobs of these summaries atomically as one checkpoint. Exactly one process calls this
// function, after all blobs are finished. Commit takes these steps (spec/commit.md):
// 1. Check that every blob exists with the right length.
// 2. Build the index, check it as a reader would, write it, and sync it.
// 3. Write and sync the marker.
// 4. Sync the directory.
// 5. Publish the marker. This step fails if the directory already has a marker.
// 6. Sync the directory again.
//
// Errors: InvalidArgument (holes, overlaps or conflicting declarations, where the message names the
// tensor and the blobs; nothing to commit; a blob of a different attempt), AlreadyExists (the
// directory has a marker), Incomplete (a blob is missing or short), Unsupported (the storage cannot
// publish a file exclusively; a blob has unknown features), LimitExceeded, NoSpace, Io. If an error
// occurs before the publication, the files that this call created are removed and the blobs are
// kept. If the publication fails, Commit reads the marker to determine whether the publication took
// effect. If the outcome remains unknown, OutcomeIsUnknown(error) is true and nothing is removed.
// Durability: after success the checkpoint survives a crash.
SEALPOINT_EXPORT Result<CommitInfo> Commit(Storage& storage, const std::string& directory,
                                           const CommitOptions& options,
                                           std::span<const BlobSummary> summaries);

// Returns true if the commit or save that returned this error may have taken effect. In this case,
// inspect the directory before you delete anything.
SEALPOINT_EXPORT bool OutcomeIsUnknown(const Status& error);

// Creates the summary of a finished blob from its file, and verifies header, trailer and manifest.
// This function cannot detect whether the blob is durable; the writer of the blob must have
// confirmed its durability (R-CMT-25). Errors: NotFound, Incomplete (the file is too short to be a
// blob), NotACheckpoint, Corrupt, Unsupported, LimitExceeded, Io.
SEALPOINT_EXPORT Result<BlobSummary> ReadSummary(const Storage& storage,
                                                 const std::string& directory, const BlobId& blob,
                                                 const Limits& limits = {});

// Returns the ids of all blobs in a directory, in ascending order. A file is recognized as a blob
// by its name.
SEALPOINT_EXPORT Result<std::vector<BlobId>> ListBlobs(const Storage& storage,
                                                       const std::string& directory);

}  // namespace sealpoint

#endif  // SEALPOINT_COMMIT_H_
