// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/commit.h"

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/format/constants.h"
#include "lib/storage/durable.h"
#include "lib/writer/commit_steps.h"

namespace sealpoint {
namespace internal {

Status CheckProvenance(const ProvenanceList& provenance) {
  for (const auto& [key, value] : provenance) {
    if (key.starts_with("sealpoint.")) {
      return InvalidArgument("provenance key \"", key, "\" is reserved for the library");
    }
  }
  return Status();
}

}  // namespace internal

Result<CommitInfo> Commit(Storage& storage, const std::string& directory,
                          const CommitOptions& options, std::span<const BlobSummary> summaries) {
  SEALPOINT_RETURN_IF_ERROR(internal::CheckProvenance(options.provenance));
  CommitOptions own = options;
  if (own.attempt.is_zero()) {
    SEALPOINT_ASSIGN_OR_RETURN(own.attempt, AttemptId::Random());
  }
  internal::PhaseRecorder recorder(options.on_phase);
  recorder.Begin(Phase::kPreflight);
  SEALPOINT_ASSIGN_OR_RETURN(const auto opened, storage.OpenDirectory(directory));
  SEALPOINT_RETURN_IF_ERROR(internal::CheckNoMarker(*opened));
  SEALPOINT_ASSIGN_OR_RETURN(const Capabilities capabilities,
                             opened->Probe(internal::ProbeName(own.attempt)));
  SEALPOINT_RETURN_IF_ERROR(internal::CheckCapabilities(*opened, capabilities));
  return internal::RunCommit(*opened, capabilities.publish, own, summaries, recorder);
}

bool OutcomeIsUnknown(const Status& error) {
  return !error.ok() && error.place().rule == internal::kUnknownOutcomeRule;
}

}  // namespace sealpoint
