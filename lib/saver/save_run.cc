// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_run.h"

#include <array>
#include <string>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/saver/merge_at_owners.h"
#include "lib/saver/reuse.h"
#include "lib/storage/durable.h"
#include "lib/writer/commit_steps.h"

namespace sealpoint::internal::saver {
namespace {

using NumberField = std::uint64_t CommitInfo::*;
constexpr std::array<NumberField, 9> kNumbers = {
    &CommitInfo::sequence,    &CommitInfo::step,
    &CommitInfo::blob_count,  &CommitInfo::tensor_count,
    &CommitInfo::raw_bytes,   &CommitInfo::total_bytes,
    &CommitInfo::index_bytes, &CommitInfo::reused_blob_count,
    &CommitInfo::reused_bytes};

// A CommitInfo, but for its report, as bytes between the ranks of one job.
Bytes EncodeCommitInfo(const CommitInfo& info) {
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(info.directory);
  out.Put(info.attempt);
  out.Put(info.parent);
  for (const NumberField field : kNumbers) out.Put(info.*field);
  return bytes;
}

Result<CommitInfo> DecodeCommitInfo(ByteSpan bytes) {
  WireReader in(bytes);
  CommitInfo info;
  SEALPOINT_ASSIGN_OR_RETURN(info.directory, in.Text());
  SEALPOINT_ASSIGN_OR_RETURN(info.attempt, in.Id<AttemptId>());
  SEALPOINT_ASSIGN_OR_RETURN(info.parent, in.Id<AttemptId>());
  for (const NumberField field : kNumbers) {
    SEALPOINT_ASSIGN_OR_RETURN(info.*field, in.Number());
  }
  return info;
}

}  // namespace

Status NoteBroken(Status& broken, Status cause) {
  if (comm::IsCommFailure(cause) && broken.ok()) {
    broken = NotBegun("the saver cannot be used after its communicator failed", cause);
  }
  return cause;
}

Status NotBegun(std::string_view reason, const Status& cause) {
  Status status = MakeError(cause.code(), reason, ": ", cause.message());
  const Place& place = cause.place();
  if (place.rank) status = Status(std::move(status).AtRank(*place.rank, place.host));
  return std::move(status).AtPath(place.path);
}

std::string NameSave(const SaveTarget& target, const SaveOptions& save) {
  const std::string step = save.step == kNoStep ? "" : StrCat(" of step ", save.step);
  return StrCat("save", step, " to ", target.path());
}

std::string DescribeSave(const SaveTarget& target, const SaveOptions& save, Phase phase) {
  return StrCat(NameSave(target, save), ", phase ", PhaseName(phase));
}

BlobWriterOptions WriterOptionsOf(const SaverOptions& options, const SaveOptions& save,
                                  observe::PhaseRecorder& recorder) {
  return {.size_max_bytes = options.blob_size_max_bytes,
          .step = save.step,
          .limits = options.limits,
          .fingerprints = options.fingerprints,
          .has_base = save.base.has_value(),
          .on_bytes = [&recorder](std::uint64_t bytes) { recorder.Progress(bytes); }};
}

Result<CommitInfo> SaveRun::Run(Payload& payload) {
  Result<CommitInfo> result = TakeSteps(payload);
  save_.recorder.End();
  if (!result.ok()) return result;
  result->report = save_.recorder.report();
  save_.destination.Promote();
  return result;
}

// A rank whose arguments are wrong still takes part in the first exchange and returns from it with
// the error of all; from then on each step is agreed on before the next begins. The free-space
// check comes last before the first byte, because it needs the plan (R-CMT-08).
Result<CommitInfo> SaveRun::TakeSteps(Payload& payload) {
  Destination& destination = save_.destination;
  Status status = payload.Begin();
  if (!status.ok()) return NoteFailure(std::move(status));
  status = payload.Ready();
  if (status.ok() && comm_.rank() == 0) status = OpenBase().status();  // before anything is written
  if (status.ok()) status = destination.MakeRoom([this] { return save_.recorder.failure(); });
  SEALPOINT_RETURN_IF_ERROR(Preflight(status, payload.planned_bytes()));
  status = payload.Plan();
  if (!status.ok()) return Fail(nullptr, std::move(status));
  Status local_status = Link(payload);
  status = destination.CheckFreeSpace(comm_, payload.tensor_bytes());
  if (!status.ok()) return Fail(nullptr, std::move(status));
  save_.recorder.Begin(Phase::kWriteBlobs, payload.tensor_bytes());
  if (local_status.ok()) local_status = payload.Write(*this);
  return Commit(payload.writer(), std::move(local_status));
}

Status SaveRun::Preflight(const Status& local_status, std::uint64_t planned_bytes) {
  const Status status = save_.destination.Preflight(comm_, local_status, planned_bytes);
  return status.ok() ? status : NoteFailure(status);
}

Result<std::optional<writer::PinnedBase>> SaveRun::OpenBase() const {
  std::optional<writer::PinnedBase> base;
  if (save_.options.base) {
    SEALPOINT_ASSIGN_OR_RETURN(
        base, writer::PinnedBase::Open(engine_.storage(), save_.options.base->directory,
                                       save_.saver.limits));
  }
  return base;
}

Status SaveRun::Link(Payload& payload) {
  SEALPOINT_ASSIGN_OR_RETURN(const auto groups, payload.FindGroups(attempt()));
  std::set<std::string> names;
  FrozenBlobs::OpenedParent parent;
  for (const FrozenGroup& group : groups) {
    SEALPOINT_ASSIGN_OR_RETURN(
        FrozenBlobs::Linked linked,
        save_.frozen.Link(engine_.storage(), attempt(), save_.saver, group, parent));
    if (linked.summaries.empty()) continue;
    names.insert(group.name);
    linked_.push_back(std::move(linked));
  }
  payload.Drop(names);
  return {};
}

std::vector<BlobSummary> SaveRun::LinkedSummaries() const {
  std::vector<BlobSummary> summaries;
  for (const FrozenBlobs::Linked& linked : linked_) {
    summaries.insert(summaries.end(), linked.summaries.begin(), linked.summaries.end());
  }
  return summaries;
}

Result<std::unique_ptr<writer::BlobWriterImpl>> SaveRun::CreateWriter() const {
  BlobWriterOptions options = WriterOptionsOf(save_.saver, save_.options, save_.recorder);
  options.attempt = attempt().id;
  return writer::BlobWriterImpl::Create(InternalAccess::PartsOf(engine_), attempt().directory,
                                        std::move(options));
}

// The sequence of collectives is the same on every rank, whatever its own outcome: two exchanges in
// MergeAtOwners and one gather. A rank that returned early would leave the others waiting in the
// next of them.
Result<CommitInfo> SaveRun::Commit(writer::BlobWriterImpl* writer, Status local_status) {
  // A crash here leaves blobs of any length and content and no marker: uncommitted.
  save_.recorder.Begin(Phase::kSyncBlobs);
  std::vector<BlobSummary> summaries;
  if (local_status.ok()) {
    auto finished = writer->Finish();
    local_status = finished.status();
    if (finished.ok()) summaries = *std::move(finished);
    const std::vector<BlobSummary> linked = LinkedSummaries();
    summaries.insert(summaries.end(), linked.begin(), linked.end());
  }
  if (local_status.ok()) local_status = save_.destination.NoteBlobs(summaries);
  // From here on every blob of this rank is durable, and so is its name (R-CMT-10): summaries leave
  // this rank only now.
  save_.recorder.Begin(Phase::kAgree);
  if (local_status.ok()) local_status = save_.recorder.failure();
  const bool is_missing = local_status.code() == Code::kNotFound;
  auto merged = MergeAtOwners(comm_, local_status, is_missing, summaries, save_.saver.limits);
  if (!merged.ok()) return Fail(writer, merged.error());
  summaries.clear();
  auto gathered = comm_.Gather(*merged, 0);
  merged->clear();
  merged->shrink_to_fit();
  if (!gathered.ok()) {
    // Rank 0 cannot publish without the parts of all ranks, so it knows that nothing is published
    // and may remove its files. Any other rank's part may have arrived before the failure: rank 0
    // may be publishing at this moment, and a blob removed now would be missing (R-CMT-20).
    return comm_.rank() == 0 ? Fail(writer, gathered.error()) : Unknown(gathered.error());
  }
  return CommitAndBroadcast(writer, *std::move(gathered));
}

Result<CommitInfo> SaveRun::CommitAndBroadcast(writer::BlobWriterImpl* writer,
                                               std::vector<Bytes> gathered) {
  const bool is_root = comm_.rank() == 0;
  Result<CommitInfo> committed = CommitInfo();
  if (is_root) {
    committed = CommitOnRoot(std::move(gathered));
  } else if (const Status broken = save_.destination.FollowCommit(comm_); !broken.ok()) {
    return Unknown(broken);
  }
  save_.recorder.Begin(Phase::kVerdict);
  const auto verdict =
      comm::BroadcastResult(comm_, 0,
                            committed.ok() ? Result<Bytes>(EncodeCommitInfo(*committed))
                                           : Result<Bytes>(committed.error()));
  if (verdict.ok()) save_.frozen.Remember(attempt().id, linked_);
  if (!verdict.ok() && comm::IsCommFailure(verdict.error())) {
    // Only the broadcast of the verdict failed. Rank 0 knows the outcome from its own storage and
    // reports it: a durable checkpoint is not a failed save because nobody could be informed of it.
    if (!is_root) return Unknown(verdict.error());
    static_cast<void>(NoteFailure(verdict.error()));
    if (committed.ok()) save_.destination.Publish(comm_.rank());
    return committed;
  }
  if (verdict.ok()) {
    save_.destination.Publish(comm_.rank());
    return DecodeCommitInfo(*verdict);
  }
  // With an unknown outcome no rank removes anything: its blobs may be those of a checkpoint.
  if (OutcomeIsUnknown(verdict.error())) return verdict.error();
  save_.destination.RemoveFiles();
  return Fail(writer, verdict.error());
}

Result<CommitInfo> SaveRun::CommitOnRoot(std::vector<Bytes> gathered) {
  CommitOptions commit{.attempt = attempt().id,
                       .step = save_.options.step,
                       .parent = attempt().parent,
                       .mesh = save_.options.mesh,
                       .attributes = save_.options.attributes,
                       .provenance = save_.options.provenance,
                       .limits = save_.saver.limits,
                       .reuses_blobs = MayLink(save_.saver)};
  commit.provenance.emplace_back("sealpoint.ranks", std::to_string(comm_.size()));
  // All errors arise in the steps, since the destination tells the other ranks of them.
  const auto steps =
      [&](const writer::BeforePublication& before_publication) -> Result<CommitInfo> {
    for (std::size_t rank = 0; rank < gathered.size(); ++rank) {
      SEALPOINT_ASSIGN_OR_RETURN(
          gathered[rank], comm::DecodeResult(std::move(gathered[rank]), static_cast<int>(rank)));
    }
    SEALPOINT_ASSIGN_OR_RETURN(const GatheredParts parts, DecodeForCommitter(gathered));
    const auto make_index = [&](const metadata::IndexAttributes& attributes) {
      return JoinGathered(parts, attributes, save_.saver.limits);
    };
    SEALPOINT_ASSIGN_OR_RETURN(const std::optional<writer::PinnedBase> base, OpenBase());
    return writer::RunCommit(*attempt().opened, attempt().publish, commit, parts.blobs, make_index,
                             save_.recorder, before_publication, base ? &*base : nullptr);
  };
  return save_.destination.CommitOnRoot(comm_, steps);
}

// Precondition: nothing was published, and nothing can be any more. Each rank removes only what it
// created (R-CMT-15). The barrier comes before the directory goes, because rmdir succeeds only
// after the last rank's files are gone.
Status SaveRun::Fail(writer::BlobWriterImpl* writer, Status cause) {
  if (writer != nullptr) static_cast<void>(writer->RemoveBlobs());
  if (!linked_.empty()) RemoveLinks(*attempt().opened, LinkedSummaries());
  if (comm::IsCommFailure(cause)) {
    cause = NoteFailure(std::move(cause));
  } else if (const Status barrier = comm_.Barrier(); !barrier.ok()) {
    static_cast<void>(NoteFailure(barrier));
    return cause;
  }
  save_.destination.RemoveDirectories(comm_.rank());
  return cause;
}

// The communicator failed after rank 0 may have received all it needs to publish. Nothing is
// removed.
Status SaveRun::Unknown(const Status& cause) {
  return storage::WithUnknownOutcome(
      NoteFailure(Status(cause).Prefixed("it is not known whether rank 0 committed")));
}

Status SaveRun::NoteFailure(Status cause) {
  const std::string during =
      DescribeSave(save_.target, save_.options, save_.recorder.current_phase());
  return NoteBroken(broken_, comm::DescribeCommFailure(comm_, std::move(cause), during));
}

}  // namespace sealpoint::internal::saver
