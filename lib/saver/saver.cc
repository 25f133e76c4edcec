// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/saver.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "lib/base/endian.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/base/phase_recorder.h"
#include "lib/comm/agree.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/saver/agree_on_declarations.h"
#include "lib/saver/commit_info_codec.h"
#include "lib/saver/declarations_add_up.h"
#include "lib/saver/merge_at_judges.h"
#include "lib/saver/preflight.h"
#include "lib/saver/save_plan.h"
#include "lib/storage/durable.h"
#include "lib/writer/commit_steps.h"
#include "lib/writer/slot_facts.h"
#include "lib/writer/tensor_checks.h"

namespace sealpoint {
namespace internal {
namespace {

class SaverImpl final : public Saver {
 public:
  SaverImpl(Engine& engine, Communicator& comm, SaverOptions options)
      : engine_(engine), comm_(comm), options_(std::move(options)) {
    comm_.set_deadline(options_.deadline);
  }

  Result<CommitInfo> Save(const SaveTarget& target, const SaveOptions& options,
                          const Sources& sources) override;

 private:
  Status CheckArguments(const SaveOptions& options, const Sources& sources) const;
  Status CheckWriterRanks() const;
  Status Plan(const Declaration& declaration);
  Status CheckFreeSpace(const Attempt& attempt);
  Result<CommitInfo> WriteAndCommit(const Attempt& attempt, const SaveOptions& options,
                                    const Sources& sources, PhaseRecorder& recorder);
  Status Write(BlobWriter& writer, const Sources& sources) const;
  Result<CommitInfo> CommitOnRoot(const Attempt& attempt, const SaveOptions& options,
                                  const std::vector<Bytes>& gathered, PhaseRecorder& recorder);
  Result<CommitInfo> CommitAndTell(const Attempt& attempt, BlobWriter* writer,
                                   const SaveOptions& options, const std::vector<Bytes>& gathered,
                                   PhaseRecorder& recorder);
  Status Fail(const Attempt& attempt, BlobWriter* writer, Status why);
  static Status Unknown(const Status& why);
  void NoteBroken(const Status& why);

  Engine& engine_;
  Communicator& comm_;
  SaverOptions options_;
  // The plan of the last declaration that all ranks agreed on, and its key. One entry only: the
  // agreement was on what all ranks declared at the same time.
  std::optional<Digest> planned_for_;
  SavePlan plan_;
  Status broken_;  // the communicator failed; ranks may disagree on where they are
};

// The same number on two ranks: the same list.
std::uint64_t Fingerprint(const std::vector<int>& ranks) {
  Bytes bytes;
  WireWriter out(bytes);
  for (const int rank : ranks) out.Put(static_cast<std::uint64_t>(rank));
  return LoadLe<std::uint64_t>(ComputeDigest(bytes).bytes, 0);
}

bool IsCommFailure(const Status& status) {
  return status.code() == Code::kComm || status.code() == Code::kTimeout;
}

Result<CommitInfo> SaverImpl::Save(const SaveTarget& target, const SaveOptions& options,
                                   const Sources& sources) {
  SEALPOINT_RETURN_IF_ERROR(engine_.parts().CheckUsable());
  if (!broken_.ok()) return broken_;
  PhaseRecorder recorder(options_.on_phase);
  recorder.Begin(Phase::kPreflight);
  Status mine = CheckArguments(options, sources);
  if (mine.ok()) mine = recorder.failure();
  auto attempt = RunPreflight(engine_.storage(), comm_, target, options, mine);
  Status status = attempt.status();
  if (status.ok()) {
    recorder.Begin(Phase::kPlan);
    status = Plan(sources.declaration());
    if (status.ok()) status = CheckFreeSpace(*attempt);
    if (!status.ok()) status = Fail(*attempt, nullptr, std::move(status));
  }
  Result<CommitInfo> result = status.ok() ? WriteAndCommit(*attempt, options, sources, recorder)
                                          : Result<CommitInfo>(status);
  recorder.End();
  if (!result.ok() && IsCommFailure(result.error())) NoteBroken(result.error());
  if (result.ok()) result->report = recorder.report();
  return result;
}

Status SaverImpl::CheckArguments(const SaveOptions& options, const Sources& sources) const {
  SEALPOINT_RETURN_IF_ERROR(CheckDescription(options.mesh, options.provenance));
  SEALPOINT_RETURN_IF_ERROR(CheckWriterRanks());
  const Declaration& declaration = sources.declaration();
  if (sources.tensors().size() != declaration.tensors().size() ||
      sources.objects().size() != declaration.objects().size()) {
    return InvalidArgument("the declaration changed after its sources were made");
  }
  for (std::size_t slot = 0; slot < declaration.tensors().size(); ++slot) {
    const HeldTensor& held = declaration.tensors()[slot];
    if (!IsEmpty(held.tensor) && !sources.tensors()[slot]) {
      return InvalidArgument("no memory is bound").AtTensor(held.tensor.name);
    }
  }
  for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
    if (!sources.objects()[i]) {
      return InvalidArgument("no bytes are bound").AtTensor(declaration.objects()[i].name);
    }
  }
  return Status();
}

// Ascending, without repetition, of ranks that are there.
Status SaverImpl::CheckWriterRanks() const {
  const std::vector<int>& ranks = options_.writer_ranks;
  const bool ascend =
      std::adjacent_find(ranks.begin(), ranks.end(), std::greater_equal<>()) == ranks.end();
  if (ranks.empty() || (ascend && ranks.front() >= 0 && ranks.back() < comm_.size())) {
    return Status();
  }
  return InvalidArgument("the ranks that write do not ascend within [0, ", comm_.size(), ")");
}

// One small reduction says whether anything changed since the last agreement; only then are
// declarations added up, and only where that does not come out are they sent, to name the fault.
Status SaverImpl::Plan(const Declaration& declaration) {
  const Digest digest = declaration.ComputeDigest();
  const bool is_changed = planned_for_ != digest;
  const std::uint64_t writers = Fingerprint(options_.writer_ranks);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> most,
                             comm_.AllReduceMax({is_changed ? 1u : 0u, writers, ~writers}));
  if (most[1] != ~most[2]) {
    return RuleError(Code::kInvalidArgument, "R-CMT-17", "ranks disagree on the ranks that write");
  }
  if (most[0] == 0) return Status();
  auto plan = MakeSavePlan(declaration, comm_.rank(), comm_.size(), options_.writer_ranks);
  SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, plan.status()));
  SEALPOINT_ASSIGN_OR_RETURN(
      const bool adds_up,
      DeclarationsAddUp(comm_, declaration, options_.writer_ranks, options_.limits));
  if (!adds_up) {
    SEALPOINT_RETURN_IF_ERROR(
        AgreeOnDeclarations(comm_, declaration, options_.writer_ranks, options_.limits));
  }
  plan_ = std::move(plan).value();
  planned_for_ = digest;
  return Status();
}

Status SaverImpl::CheckFreeSpace(const Attempt& attempt) {
  Bytes mine;
  WireWriter(mine).Put(plan_.tensor_bytes);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<Bytes> all, comm_.Gather(mine, 0));
  Status status;
  std::uint64_t wanted = 0;
  for (const Bytes& bytes : all) {
    const auto one = WireReader(bytes).Number();
    if (!one.ok() && status.ok()) status = one.error();
    wanted += one.value_or(0);
  }
  if (comm_.rank() == 0 && status.ok()) {
    const auto space = attempt.opened->FreeSpace();
    const std::uint64_t files = static_cast<std::uint64_t>(comm_.size()) + 3;
    if (!space.ok()) {
      status = space.error();
    } else if (space->free_bytes < wanted || space->free_inodes < files) {
      status = MakeError(Code::kNoSpace, "the save needs ", wanted, " bytes and ", files,
                         " files; free are ", space->free_bytes, " bytes and ", space->free_inodes,
                         " inodes")
                   .AtRule("R-CMT-08")
                   .AtPath(attempt.directory);
    }
  }
  return AgreeOnStatus(comm_, status);
}

Result<CommitInfo> SaverImpl::WriteAndCommit(const Attempt& attempt, const SaveOptions& options,
                                             const Sources& sources, PhaseRecorder& recorder) {
  recorder.Begin(Phase::kWriteBlobs, plan_.tensor_bytes);
  auto writer = BlobWriter::Create(
      engine_, attempt.directory,
      {.size_max_bytes = options_.blob_size_max_bytes,
       .attempt = attempt.id,
       .step = options.step,
       .limits = options_.limits,
       .on_progress = [&recorder](std::uint64_t bytes) { recorder.Progress(bytes); }});
  Status mine = writer.status();
  if (mine.ok()) mine = Write(**writer, sources);
  recorder.Begin(Phase::kSyncBlobs);
  std::vector<BlobSummary> summaries;
  if (mine.ok()) {
    auto finished = (*writer)->Finish();
    mine = finished.status();
    if (finished.ok()) summaries = *std::move(finished);
  }
  BlobWriter* const own = writer.ok() ? writer->get() : nullptr;
  recorder.Begin(Phase::kAgree);
  if (mine.ok()) mine = recorder.failure();
  const Status agreed = AgreeOnStatus(comm_, mine);
  if (!agreed.ok()) return Fail(attempt, own, agreed);
  const auto merged = MergeAtJudges(comm_, summaries, options_.limits);
  if (!merged.ok()) return Fail(attempt, own, merged.error());
  auto gathered = comm_.Gather(*merged, 0);
  if (!gathered.ok()) {
    // Rank 0 cannot go on without all of it. Another rank's may have arrived (R-CMT-20).
    return comm_.rank() == 0 ? Fail(attempt, own, gathered.error()) : Unknown(gathered.error());
  }
  return CommitAndTell(attempt, own, options, *gathered, recorder);
}

Result<CommitInfo> SaverImpl::CommitAndTell(const Attempt& attempt, BlobWriter* writer,
                                            const SaveOptions& options,
                                            const std::vector<Bytes>& gathered,
                                            PhaseRecorder& recorder) {
  const bool is_root = comm_.rank() == 0;
  Result<CommitInfo> committed = CommitInfo();
  if (is_root) committed = CommitOnRoot(attempt, options, gathered, recorder);
  recorder.Begin(Phase::kVerdict);
  const auto verdict = BroadcastResult(comm_, 0,
                                       committed.ok() ? Result<Bytes>(EncodeCommitInfo(*committed))
                                                      : Result<Bytes>(committed.error()));
  if (!verdict.ok() && IsCommFailure(verdict.error())) {
    NoteBroken(verdict.error());
    // Rank 0 knows all the same, and must not call lost what is durable.
    return is_root ? committed : Unknown(verdict.error());
  }
  if (verdict.ok()) return DecodeCommitInfo(*verdict);
  if (OutcomeIsUnknown(verdict.error())) return verdict.error();
  return Fail(attempt, writer, verdict.error());
}

Status SaverImpl::Write(BlobWriter& writer, const Sources& sources) const {
  // How many buffers are in use at once is a matter of timing; all that a save can use are made in
  // the first one.
  StagingPool& pool = *engine_.parts().pool;
  SEALPOINT_RETURN_IF_ERROR(pool.Reserve(plan_.tensor_bytes / pool.buffer_size_bytes() + 1));
  const Declaration& declaration = sources.declaration();
  for (const PlannedPiece& piece : plan_.pieces) {
    const HeldTensor& held = declaration.tensors()[piece.slot];
    ConstMemoryView view = *sources.tensors()[piece.slot];
    Region region = HeldRegionOf(held);
    if (view.strides_bytes.empty()) {
      view.data += (piece.run.begin - region.run.begin) * ElementSize(held.tensor);
    }
    region.run = piece.run;
    SEALPOINT_RETURN_IF_ERROR(writer.Add(held.tensor, region, view));
  }
  for (const std::size_t slot : plan_.empty_slots) {
    SEALPOINT_RETURN_IF_ERROR(writer.AddEmpty(declaration.tensors()[slot].tensor));
  }
  for (std::size_t i = 0; i < declaration.objects().size(); ++i) {
    const HeldObject& object = declaration.objects()[i];
    SEALPOINT_RETURN_IF_ERROR(
        writer.AddObject(object.name, object.media_type, *sources.objects()[i], object.codec));
  }
  return Status();
}

Result<CommitInfo> SaverImpl::CommitOnRoot(const Attempt& attempt, const SaveOptions& options,
                                           const std::vector<Bytes>& gathered,
                                           PhaseRecorder& recorder) {
  SEALPOINT_ASSIGN_OR_RETURN(const GatheredParts parts, DecodeForCommitter(gathered));
  CommitOptions commit{.attempt = attempt.id,
                       .step = options.step,
                       .parent = attempt.parent,
                       .mesh = options.mesh,
                       .provenance = options.provenance,
                       .limits = options_.limits};
  commit.provenance.emplace_back("sealpoint.ranks", std::to_string(comm_.size()));
  const auto make_index = [&](const IndexFacts& facts) {
    return JoinGathered(parts, facts, options_.limits);
  };
  return RunCommit(*attempt.opened, attempt.publish, commit, parts.blobs, make_index, recorder);
}

// After an agreed failure before publication every rank removes its own files; the last one out is
// rank 0, which removes the directory if that left it empty. Returns `why`.
Status SaverImpl::Fail(const Attempt& attempt, BlobWriter* writer, Status why) {
  if (writer != nullptr) static_cast<void>(writer->Abandon());
  if (!IsCommFailure(why)) {
    const Status met = comm_.Barrier();
    if (!met.ok()) {
      NoteBroken(met);
      return why;
    }
  }
  if (comm_.rank() == 0) RemoveEmptyDirectory(engine_.storage(), attempt);
  return why;
}

// The communicator failed when rank 0 may have had what it needs to publish: nothing is removed.
Status SaverImpl::Unknown(const Status& why) {
  return Status(why)
      .AtRule(kUnknownOutcomeRule)
      .Prefixed("it is not known whether rank 0 committed");
}

void SaverImpl::NoteBroken(const Status& why) {
  if (broken_.ok()) {
    broken_ = Status(why).Prefixed("the saver cannot be used after its communicator failed");
  }
}

}  // namespace
}  // namespace internal

SaveTarget SaveTarget::InSeries(std::string series_directory) {
  return {.path = std::move(series_directory), .is_series = true, .parent = {}};
}

SaveTarget SaveTarget::Directory(std::string directory, std::optional<ParentRef> parent) {
  return {.path = std::move(directory), .is_series = false, .parent = parent};
}

Result<std::unique_ptr<Saver>> Saver::Create(Engine& engine, Communicator& communicator,
                                             SaverOptions options) {
  SEALPOINT_RETURN_IF_ERROR(engine.parts().CheckUsable());
  return std::unique_ptr<Saver>(
      std::make_unique<internal::SaverImpl>(engine, communicator, std::move(options)));
}

}  // namespace sealpoint
