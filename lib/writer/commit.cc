// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/commit.h"

#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/metadata/merge_manifests.h"
#include "lib/storage/durable.h"
#include "lib/writer/commit_steps.h"

namespace sealpoint {

Result<CommitInfo> Commit(Storage& storage, const std::string& directory,
                          const CommitOptions& options, std::span<const BlobSummary> summaries) {
  SEALPOINT_RETURN_IF_ERROR(internal::writer::CheckDescription(options.mesh, options.provenance));
  SEALPOINT_RETURN_IF_ERROR(internal::writer::CheckParent(options.parent));
  if (summaries.empty() && !options.allow_empty) {
    return internal::InvalidArgument(
        "no blob summary is given, so there is nothing to commit; see CommitOptions::allow_empty");
  }
  CommitOptions resolved = options;
  if (resolved.attempt.is_zero()) {
    SEALPOINT_ASSIGN_OR_RETURN(resolved.attempt, AttemptId::Random());
  }
  if (resolved.parent && resolved.parent->attempt == resolved.attempt) {
    return internal::InvalidArgument("the attempt is its own parent");
  }
  internal::observe::PhaseRecorder recorder(options.on_progress, options.step);
  recorder.Begin(Phase::kPreflight);
  SEALPOINT_ASSIGN_OR_RETURN(const auto opened, storage.OpenDirectory(directory));
  SEALPOINT_RETURN_IF_ERROR(internal::writer::CheckNoMarker(*opened));
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities,
                             opened->Probe(internal::format::ProbeName(resolved.attempt)));
  SEALPOINT_RETURN_IF_ERROR(internal::storage::CheckCapabilities(*opened, capabilities));
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<internal::writer::CommittedBlob> blobs,
                             internal::writer::CommittedBlobsOf(summaries));
  std::vector<internal::metadata::BlobContribution> contributions;
  contributions.reserve(summaries.size());
  for (const BlobSummary& summary : summaries) {
    const internal::writer::DecodedSummary& decoded = *InternalAccess::DecodedOf(summary);
    contributions.push_back({decoded.pin, &decoded.manifest});
  }
  const auto make_index = [&](const internal::metadata::IndexAttributes& attributes) {
    return internal::metadata::EncodeIndex(contributions, attributes, resolved.limits);
  };
  return internal::writer::RunCommit(*opened, capabilities.publish, resolved, blobs, make_index,
                                     recorder);
}

bool OutcomeIsUnknown(const Status& error) { return error.has_unknown_outcome(); }

}  // namespace sealpoint
