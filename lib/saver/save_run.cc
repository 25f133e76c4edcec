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
#include "lib/format/constants.h"
#include "lib/saver/agree_on_attempt.h"
#include "lib/saver/merge_at_owners.h"
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
  SEALPOINT_ASSIGN_OR_RETURN(info.attempt, in.Id());
  SEALPOINT_ASSIGN_OR_RETURN(info.parent, in.Id());
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
  return StrCat("save", step, " to ", target.path);
}

std::string DescribeSave(const SaveTarget& target, const SaveOptions& save, Phase phase) {
  return StrCat(NameSave(target, save), ", phase ", PhaseName(phase));
}

BlobWriterOptions WriterOptionsOf(const SaverOptions& options, const SaveOptions& save,
                                  observe::PhaseRecorder& recorder) {
  return {.size_max_bytes = options.blob_size_max_bytes,
          .step = save.step,
          .limits = options.limits,
          .on_bytes = [&recorder](std::uint64_t bytes) { recorder.Progress(bytes); }};
}

Status SaveRun::Preflight(const Status& local_status) {
  const auto run = is_staged() ? RunStagedPreflight : RunPreflight;
  auto attempt = run(engine_.storage(), comm_, target_, save_, local_status);
  if (!attempt.ok()) return NoteFailure(std::move(attempt).error());
  attempt_ = std::move(attempt).value();
  return {};
}

// Each rank for itself: which of them share a disk is not known, and this is an early answer only.
Status SaveRun::CheckLocalSpace(std::uint64_t tensor_bytes) {
  SEALPOINT_ASSIGN_OR_RETURN(const SpaceInfo space, attempt_.opened->FreeSpace());
  if (space.free_bytes >= tensor_bytes) return {};
  return MakeError(Code::kNoSpace, "the save needs ", tensor_bytes,
                   " bytes of local storage; free are ", space.free_bytes)
      .AtRule("R-CMT-08")
      .AtPath(attempt_.directory);
}

Result<std::set<std::string>> SaveRun::LinkFrozen(std::span<const FrozenGroup> groups) {
  std::set<std::string> names;
  FrozenBlobs::OpenedParent parent;
  for (const FrozenGroup& group : groups) {
    SEALPOINT_ASSIGN_OR_RETURN(FrozenBlobs::Linked linked,
                               frozen_.Link(engine_.storage(), attempt_, options_, group, parent));
    if (linked.summaries.empty()) continue;
    names.insert(group.name);
    linked_.push_back(std::move(linked));
  }
  return names;
}

std::vector<BlobSummary> SaveRun::LinkedSummaries() const {
  std::vector<BlobSummary> summaries;
  for (const FrozenBlobs::Linked& linked : linked_) {
    summaries.insert(summaries.end(), linked.summaries.begin(), linked.summaries.end());
  }
  return summaries;
}

Status SaveRun::CheckFreeSpace(std::uint64_t tensor_bytes) {
  if (is_staged()) return AgreeOnStatus(comm_, CheckLocalSpace(tensor_bytes));
  Bytes local_bytes;
  WireWriter(local_bytes).Put(tensor_bytes);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm_.Gather(local_bytes, 0));
  Status status;
  std::uint64_t needed = 0;
  for (const Bytes& bytes : all) {
    const auto number = WireReader(bytes).Number();
    if (!number.ok() && status.ok()) status = number.error();
    needed += number.value_or(0);
  }
  if (comm_.rank() == 0 && status.ok()) {
    const auto space = attempt_.opened->FreeSpace();
    const std::uint64_t files = static_cast<std::uint64_t>(comm_.size()) + 3;
    if (!space.ok()) {
      status = space.error();
    } else if (space->free_bytes < needed || space->free_inodes < files) {
      status = MakeError(Code::kNoSpace, "the save needs ", needed, " bytes and ", files,
                         " files; free are ", space->free_bytes, " bytes and ", space->free_inodes,
                         " inodes")
                   .AtRule("R-CMT-08")
                   .AtPath(attempt_.directory);
    }
  }
  return AgreeOnStatus(comm_, status);
}

Result<std::unique_ptr<writer::BlobWriterImpl>> SaveRun::CreateWriter() const {
  BlobWriterOptions options = WriterOptionsOf(options_, save_, recorder_);
  options.attempt = attempt_.id;
  return writer::BlobWriterImpl::Create(InternalAccess::PartsOf(engine_), attempt_.directory,
                                        std::move(options));
}

// The sequence of collectives is the same on every rank, whatever its own outcome: one all-reduce
// (with a broadcast of the first error, if there is one), three exchanges in MergeAtOwners and one
// gather. A rank that returned early would leave the others waiting in the next of them.
Result<CommitInfo> SaveRun::Commit(writer::BlobWriterImpl* writer, Status local_status) {
  // A crash here leaves blobs of any length and content and no marker: uncommitted.
  recorder_.Begin(Phase::kSyncBlobs);
  std::vector<BlobSummary> summaries;
  if (local_status.ok()) {
    auto finished = writer->Finish();
    local_status = finished.status();
    if (finished.ok()) summaries = *std::move(finished);
    const std::vector<BlobSummary> linked = LinkedSummaries();
    summaries.insert(summaries.end(), linked.begin(), linked.end());
  }
  if (local_status.ok() && is_staged()) local_status = NoteOwnBlobs(summaries);
  // From here on every blob of this rank is durable, and so is its name (R-CMT-10): summaries leave
  // this rank only now.
  recorder_.Begin(Phase::kAgree);
  if (local_status.ok()) local_status = recorder_.failure();
  const bool is_missing = local_status.code() == Code::kNotFound;
  const Status agreed = AgreeOnAttempt(comm_, local_status, is_missing);
  if (!agreed.ok()) return Fail(writer, agreed);
  auto merged = MergeAtOwners(comm_, summaries, options_.limits);
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
  return CommitAndBroadcast(writer, *gathered);
}

Result<CommitInfo> SaveRun::CommitAndBroadcast(writer::BlobWriterImpl* writer,
                                               const std::vector<Bytes>& gathered) {
  const bool is_root = comm_.rank() == 0;
  Result<CommitInfo> committed = CommitInfo();
  if (is_root) {
    committed = CommitOnRoot(gathered);
  } else if (is_staged()) {
    Status broken;
    static_cast<void>(PlaceOnNode(broken));  // rank 0 knows
    if (!broken.ok()) return Unknown(broken);
  }
  recorder_.Begin(Phase::kVerdict);
  const auto verdict =
      comm::BroadcastResult(comm_, 0,
                            committed.ok() ? Result<Bytes>(EncodeCommitInfo(*committed))
                                           : Result<Bytes>(committed.error()));
  if (verdict.ok()) frozen_.Remember(attempt_.id, linked_);
  if (!verdict.ok() && comm::IsCommFailure(verdict.error())) {
    // Only the broadcast of the verdict failed. Rank 0 knows the outcome from its own storage and
    // reports it: a durable checkpoint is not a failed save because nobody could be informed of it.
    if (!is_root) return Unknown(verdict.error());
    static_cast<void>(NoteFailure(verdict.error()));
    if (committed.ok()) PublishOnNode();
    return committed;
  }
  if (verdict.ok()) {
    PublishOnNode();
    return DecodeCommitInfo(*verdict);
  }
  // With an unknown outcome no rank removes anything: its blobs may be those of a checkpoint.
  if (OutcomeIsUnknown(verdict.error())) return verdict.error();
  RemoveFromNode();
  return Fail(writer, verdict.error());
}

Result<CommitInfo> SaveRun::CommitOnRoot(const std::vector<Bytes>& gathered) {
  SEALPOINT_ASSIGN_OR_RETURN(const GatheredParts parts, DecodeForCommitter(gathered));
  CommitOptions commit{.attempt = attempt_.id,
                       .step = save_.step,
                       .parent = attempt_.parent,
                       .mesh = save_.mesh,
                       .provenance = save_.provenance,
                       .limits = options_.limits,
                       .reuses_blobs = MayLink(options_)};
  commit.provenance.emplace_back("sealpoint.ranks", std::to_string(comm_.size()));
  const auto make_index = [&](const metadata::IndexAttributes& attributes) {
    return JoinGathered(parts, attributes, options_.limits);
  };
  if (!is_staged()) {
    return writer::RunCommit(*attempt_.opened, attempt_.publish, commit, parts.blobs, make_index,
                             recorder_);
  }
  auto committed = writer::RunCommit(
      *attempt_.opened, attempt_.publish, commit, parts.blobs, make_index, recorder_,
      [this](ByteSpan index_file, ByteSpan marker) { return SendToNodes(index_file, marker); });
  if (committed.ok()) committed->directory = attempt_.final_directory;
  if (was_sent_) return committed;
  // The others wait for index and marker.
  const auto outcome = comm::BroadcastResult(comm_, 0, committed.status());
  return comm::IsCommFailure(outcome.status()) ? outcome.error() : committed.error();
}

// R-CMT-02, by who wrote them: rank 0 may not see them.
Status SaveRun::NoteOwnBlobs(const std::vector<BlobSummary>& summaries) {
  for (const BlobSummary& summary : summaries) staged_.blobs.push_back(summary.blob());
  SEALPOINT_ASSIGN_OR_RETURN(const auto blobs, writer::CommittedBlobsOf(summaries));
  return writer::CheckBlobsAreThere(*attempt_.opened, blobs);
}

Status SaveRun::SendToNodes(ByteSpan index_file, ByteSpan marker) {
  was_sent_ = true;
  staged_.is_first = true;
  staged_.index.assign(index_file.begin(), index_file.end());
  staged_.marker.assign(marker.begin(), marker.end());
  Bytes bytes;
  WireWriter out(bytes);
  out.Put(AsText(marker));
  out.Put(AsText(index_file));
  SEALPOINT_RETURN_IF_ERROR(comm::BroadcastResult(comm_, 0, std::move(bytes)).status());
  return AgreeOnStatus(comm_, {});
}

// The ranks of a node find out by exclusive creation which of them places the files there. All of
// them agree afterwards, so that the one is done before any of them goes on.
Status SaveRun::PlaceOnNode(Status& broken) {
  const auto sent = comm::BroadcastResult(comm_, 0, Bytes());
  if (!sent.ok()) {
    if (comm::IsCommFailure(sent.error())) broken = sent.error();
    return sent.error();
  }
  const auto place = [&]() -> Status {
    WireReader in(*sent);
    SEALPOINT_ASSIGN_OR_RETURN(const std::string marker, in.Text());
    SEALPOINT_ASSIGN_OR_RETURN(const ByteSpan index, in.Span());
    staged_.marker.assign(AsBytes(marker).begin(), AsBytes(marker).end());
    staged_.index.assign(index.begin(), index.end());
    Status placed = writer::WriteIndexAndMarker(*attempt_.opened, attempt_.publish, attempt_.id,
                                                staged_.index, staged_.marker, own_files_);
    staged_.is_first = placed.ok();
    return placed.code() == Code::kAlreadyExists ? Status() : placed;
  };
  const Status placed = place();
  const Status agreed = AgreeOnStatus(comm_, placed);
  if (comm::IsCommFailure(agreed)) broken = agreed;
  return agreed;
}

// The checkpoint is committed by now, by the node of rank 0. A node that cannot publish has the
// unpublished marker, which a restart finds, and promotes with the bytes that this rank holds.
void SaveRun::PublishOnNode() {
  if (!is_staged()) return;
  staged_.local = attempt_.directory;
  staged_.final = attempt_.final_directory;
  staged_.step = save_.step;
  if (comm_.rank() == 0 || !staged_.is_first) return;
  static_cast<void>(
      writer::PublishMarker(*attempt_.opened, attempt_.publish, attempt_.id, staged_.marker));
}

void SaveRun::RemoveFromNode() {
  if (!own_files_.empty()) writer::RemoveOwnFiles(*attempt_.opened, own_files_);
}

// Precondition: nothing was published, and nothing can be any more. Each rank removes only what it
// created (R-CMT-15). The barrier comes before the directory goes, because rmdir succeeds only
// after the last rank's files are gone.
Status SaveRun::Fail(writer::BlobWriterImpl* writer, Status cause) {
  if (writer != nullptr) static_cast<void>(writer->RemoveBlobs());
  if (!linked_.empty()) RemoveLinks(*attempt_.opened, LinkedSummaries());
  if (comm::IsCommFailure(cause)) {
    cause = NoteFailure(std::move(cause));
  } else if (const Status barrier = comm_.Barrier(); !barrier.ok()) {
    static_cast<void>(NoteFailure(barrier));
    return cause;
  }
  if (comm_.rank() == 0 || is_staged()) RemoveEmptyDirectories(attempt_);
  return cause;
}

// The communicator failed after rank 0 may have received all it needs to publish. Nothing is
// removed.
Status SaveRun::Unknown(const Status& cause) {
  return storage::WithUnknownOutcome(
      NoteFailure(Status(cause).Prefixed("it is not known whether rank 0 committed")));
}

Status SaveRun::NoteFailure(Status cause) {
  const std::string during = DescribeSave(target_, save_, recorder_.current_phase());
  return NoteBroken(broken_, comm::DescribeCommFailure(comm_, std::move(cause), during));
}

}  // namespace sealpoint::internal::saver
