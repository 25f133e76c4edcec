// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_COMMIT_STEPS_H_
#define SEALPOINT_LIB_WRITER_COMMIT_STEPS_H_

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "lib/format/marker.h"
#include "lib/metadata/index_attributes.h"
#include "lib/observe/phase_recorder.h"
#include "lib/writer/blob_summary_parts.h"
#include "lib/writer/pinned_base.h"
#include "sealpoint/commit.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::writer {

// AlreadyExists if the directory holds a marker, void or not, readable or not (R-CMT-01).
Status CheckNoMarker(Directory& directory);

// InvalidArgument for values that cannot be stored, and for provenance keys that are reserved or
// duplicate (R-CMT-24).
Status CheckDescription(const MeshAxes& mesh, const ProvenanceList& provenance);
// InvalidArgument for a parent that no checkpoint can have.
Status CheckParent(const std::optional<ParentRef>& parent);

// The committer's data about a blob; its size does not depend on the blob's content.
struct CommittedBlob {
  metadata::BlobPin pin{};
  AttemptId attempt{};  // zero if its writer did not know it
  format::FeatureMasks features{};
  friend bool operator==(const CommittedBlob&, const CommittedBlob&) = default;
};
// Converts summaries. Errors: InvalidArgument (a default-constructed summary).
Result<std::vector<CommittedBlob>> CommittedBlobsOf(std::span<const BlobSummary> summaries);

// R-CMT-02 for each of them.
Status CheckBlobsAreThere(const Directory& directory, std::span<const CommittedBlob> blobs);

// Makes the FlatBuffer of the index.
using IndexMaker = std::function<Result<Bytes>(const metadata::IndexAttributes& attributes)>;

// Called when index and marker are durable, before the publication; an error ends the commit.
using BeforePublication = std::function<Status(ByteSpan index_file, ByteSpan marker)>;

// The steps of spec/commit.md from "check blobs" on, on one process. `options.attempt` must be set.
// Reports its phases to `recorder`, and returns its report in the result. After an error with a
// known outcome, the index and marker that it wrote are removed; the blobs are kept. With
// `before_publication` the blobs are not checked: they are on other nodes, and their writers have
// checked them (R-STG-01). With `base` the checkpoint is a delta: if the base goes meanwhile, the
// outcome is said to be unknown, and nothing is removed.
Result<CommitInfo> RunCommit(Directory& directory, PublishMethod method,
                             const CommitOptions& options, std::span<const CommittedBlob> blobs,
                             const IndexMaker& make_index, observe::PhaseRecorder& recorder,
                             const BeforePublication& before_publication = {},
                             const PinnedBase* base = nullptr);

// Writes index and unpublished marker durably, if the method of publication needs that one, and
// notes in `own_files` which were made here.
Status WriteIndexAndMarker(Directory& directory, PublishMethod method, const AttemptId& attempt,
                           ByteSpan index_file, ByteSpan marker,
                           std::vector<std::string>& own_files);
// Publishes the marker that WriteIndexAndMarker was given (spec/commit.md section 2.1).
Status PublishMarker(Directory& directory, PublishMethod method, const AttemptId& attempt,
                     ByteSpan marker);
// Removes files made by WriteIndexAndMarker.
void RemoveOwnFiles(Directory& directory, std::vector<std::string>& own_files);

}  // namespace sealpoint::internal::writer

#endif  // SEALPOINT_LIB_WRITER_COMMIT_STEPS_H_
