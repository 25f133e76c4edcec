// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_COMMIT_STEPS_H_
#define SEALPOINT_LIB_WRITER_COMMIT_STEPS_H_

#include <span>
#include <string>

#include "lib/base/phase_recorder.h"
#include "lib/format/marker.h"
#include "lib/writer/blob_summary_parts.h"
#include "sealpoint/commit.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal {

// Rule id of an error whose outcome nobody knows (spec/commit.md).
inline constexpr std::string_view kUnknownOutcomeRule = "R-CMT-07";

// AlreadyExists where the directory holds a marker, void or not, readable or not (R-CMT-01).
Status CheckNoMarker(Directory& directory);

// Unsupported where the file system lacks what a commit needs: exclusive publication, directory
// sync (R-CMT-04, R-CMT-05).
Status CheckCapabilities(const Directory& directory, const Capabilities& capabilities);

// InvalidArgument for a key of the caller's that begins with "sealpoint.".
Status CheckProvenance(const ProvenanceList& provenance);

// The steps of spec/commit.md from "check blobs" on, on one process. `options.attempt` is set.
// Phases are told to `recorder`; its report is in the result.
Result<CommitInfo> RunCommit(Directory& directory, PublishMethod method,
                             const CommitOptions& options, std::span<const BlobSummary> summaries,
                             PhaseRecorder& recorder);

// Creates a small file, writes, syncs and closes it.
Status WriteFileDurably(Directory& directory, std::string_view name, ByteSpan content);

// Publishes `unpublished` as COMMIT and settles an ambiguous error by reading the marker back
// (R-CMT-06, R-CMT-07). `marker` is what was written. Also used for void markers.
Status PublishMarker(Directory& directory, PublishMethod method, const std::string& unpublished,
                     const MarkerBytes& marker);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_COMMIT_STEPS_H_
