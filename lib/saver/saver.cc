// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/saver.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/comm/agree.h"
#include "lib/observe/phase_recorder.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/saver/background_save.h"
#include "lib/saver/destination.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/learned_frozen.h"
#include "lib/saver/plan_agreement.h"
#include "lib/saver/promotion_queue.h"
#include "lib/saver/save_call.h"
#include "lib/saver/save_plan.h"
#include "lib/saver/save_queue.h"
#include "lib/saver/save_run.h"
#include "lib/saver/write_sources.h"
#include "lib/writer/commit_steps.h"
#include "lib/writer/staged_writer.h"
#include "lib/writer/state_writer.h"

namespace sealpoint {
namespace internal::saver {
namespace {

class SaverImpl final : public Saver {
 public:
  SaverImpl(Engine& engine, Communicator& comm, SaverOptions options)
      : engine_(engine),
        comm_(comm),
        options_(std::move(options)),
        plans_(InternalAccess::PartsOf(engine), comm, options_),
        promotions_(PromotionQueue::Create(InternalAccess::PartsOf(engine).storage, options_)) {
    comm_.set_deadline(options_.deadline);
  }
  ~SaverImpl() override {
    if (queue_ && queue_->CheckProcess().ok()) queue_->Close();
    if (InternalAccess::PartsOf(engine_).CheckUsable().ok()) promotions_->Close();
  }

  Result<CommitInfo> Save(const SaveTarget& target, const SaveOptions& options,
                          const Sources& sources) override;
  Result<std::unique_ptr<PendingSave>> SaveAsync(const SaveTarget& target,
                                                 const SaveOptions& options,
                                                 const Sources& sources) override;
  std::vector<Promotion> TakePromotions() override { return promotions_->Take(); }
  bool WaitForPromotions(std::chrono::milliseconds longest) override {
    return promotions_->WaitFor(longest);
  }

 private:
  Status CheckUsable() const;
  Status CheckArguments(const Destination& destination, const SaveOptions& options,
                        const Sources& sources) const;
  Result<CommitInfo> RunInForeground(const SaveTarget& target, const SaveOptions& options,
                                     Destination& destination, SaveRun& run,
                                     const Status& local_status, const Sources& held,
                                     observe::PhaseRecorder& recorder);
  Status OpenQueue();
  // Collective. From the first exchange until the state is copied, and the save queued.
  Status StageInBackground(const SaveTarget& target, const SaveOptions& options,
                           const Sources& held, const std::shared_ptr<BackgroundSave>& save);
  // The plan of a save as this rank writes it. Not collective.
  Result<GroupedPlan> Group(const LocalPlan& local_plan, const Destination& destination,
                            const Sources& sources);
  std::unique_ptr<writer::StagedWriter> ReserveStaging(const SavePlan& plan,
                                                       const Destination& destination,
                                                       const SaveOptions& options,
                                                       const Sources& sources,
                                                       observe::PhaseRecorder& recorder) const;
  // `local_status`: of what this rank did before.
  void Stream(const std::shared_ptr<BackgroundSave>& save, const SavePlan& plan,
              const Sources& sources, Status local_status);
  // What is to be written of the plan, after blobs of the parent were linked. Not collective.
  Result<std::shared_ptr<const SavePlan>> LinkFrozen(const Destination& destination, SaveRun& run,
                                                     const LocalPlan& local_plan,
                                                     const Sources& sources);
  Status Write(writer::StateWriter& writer, const SavePlan& plan, const Sources& sources) const {
    return WriteSources(options_, writer, plan, sources);
  }

  Engine& engine_;
  Communicator& comm_;
  SaverOptions options_;
  PlanAgreement plans_;
  LearnedFrozen learned_;  // of the plan of this rank
  Status broken_;          // the communicator failed; ranks may disagree on where they are
  std::shared_ptr<SaveQueue> queue_;  // of saves in the background; absent before the first
  const std::shared_ptr<PromotionQueue> promotions_;
  // Shared with saves in the background; one save uses it at a time.
  const std::shared_ptr<FrozenBlobs> frozen_ = std::make_shared<FrozenBlobs>();
};

Result<CommitInfo> SaverImpl::Save(const SaveTarget& target, const SaveOptions& options,
                                   const Sources& sources) {
  SEALPOINT_RETURN_IF_ERROR(InternalAccess::PartsOf(engine_).CheckUsable());
  if (queue_) queue_->Drain();
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  observe::PhaseRecorder recorder(options_.on_phase, options.step);
  recorder.Begin(Phase::kPreflight);
  const auto destination = MakeDestination(engine_.storage(), target, options, promotions_);
  Status local_status = CheckArguments(*destination, options, sources);
  if (local_status.ok()) local_status = recorder.failure();
  SaveRun run(engine_, comm_, options_, target, options, *destination, recorder, *frozen_);
  Result<CommitInfo> result =
      RunInForeground(target, options, *destination, run, local_status, sources, recorder);
  recorder.End();
  if (!run.broken().ok()) broken_ = run.broken();
  if (result.ok()) {
    result->report = recorder.report();
    destination->Promote();
  }
  return result;
}

// A rank whose arguments are wrong still takes part in the first exchange and returns from it with
// the error of all; from then on each step is agreed on before the next begins. The free-space
// check comes last before the first byte, because it needs the plan (R-CMT-08).
Result<CommitInfo> SaverImpl::RunInForeground(const SaveTarget& target, const SaveOptions& options,
                                              Destination& destination, SaveRun& run,
                                              const Status& local_status, const Sources& held,
                                              observe::PhaseRecorder& recorder) {
  Proposal proposal{.target = target, .options = options, .held = held};
  Status status = plans_.Begin("save", local_status, proposal);
  if (!status.ok()) return run.NoteFailure(std::move(status));
  Status ready = proposal.local.status();
  if (ready.ok()) ready = destination.MakeRoom([&] { return recorder.failure(); });
  SEALPOINT_RETURN_IF_ERROR(run.Preflight(ready));
  recorder.Begin(Phase::kPlan);
  status = plans_.Agree(proposal);
  if (!status.ok()) return run.Fail(nullptr, std::move(status));
  const Sources& sources = proposal.sources();
  const auto plan = LinkFrozen(destination, run, *proposal.local, sources);
  const std::uint64_t bytes = plan.ok() ? (*plan)->tensor_bytes : 0;
  status = destination.CheckFreeSpace(comm_, bytes);
  if (!status.ok()) return run.Fail(nullptr, std::move(status));
  recorder.Begin(Phase::kWriteBlobs, bytes);
  const auto writer = run.CreateWriter();
  Status written = plan.ok() ? writer.status() : plan.status();
  if (written.ok()) written = Write(**writer, **plan, sources);
  return run.Commit(writer.ok() ? writer->get() : nullptr, std::move(written));
}

// Runs on the training thread and uses the saver's own communicator; the queue has a duplicate of
// it, so these collectives cannot be mixed up with those of saves under way.
//
// The ranks must agree on how to stage: a rank that streams blocks here until the background thread
// has made the directory, which is collective, so all ranks must have queued the save by then.
Result<std::unique_ptr<PendingSave>> SaverImpl::SaveAsync(const SaveTarget& target,
                                                          const SaveOptions& options,
                                                          const Sources& held) {
  SEALPOINT_RETURN_IF_ERROR(InternalAccess::PartsOf(engine_).CheckUsable());
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  const auto save = std::make_shared<BackgroundSave>(engine_.storage(), options_, target, options,
                                                     promotions_, frozen_);
  save->recorder().Begin(Phase::kPlan);
  Status staged = StageInBackground(target, options, held, save);
  if (staged.ok()) return MakePendingSave(queue_, save);
  const std::string during = DescribeSave(target, options, save->recorder().current_phase());
  return NoteBroken(broken_, comm::DescribeCommFailure(comm_, std::move(staged), during));
}

Status SaverImpl::StageInBackground(const SaveTarget& target, const SaveOptions& options,
                                    const Sources& held,
                                    const std::shared_ptr<BackgroundSave>& save) {
  observe::PhaseRecorder& recorder = save->recorder();
  GroupedPlan grouped;
  std::unique_ptr<writer::StagedWriter> staged;
  const auto reserve = [&](const LocalPlan& local_plan, const Sources& sources) -> Result<bool> {
    SEALPOINT_ASSIGN_OR_RETURN(grouped, Group(local_plan, save->destination(), sources));
    staged = ReserveStaging(*grouped.plan, save->destination(), options, sources, recorder);
    return staged == nullptr;
  };
  Proposal proposal{.target = target, .options = options, .held = held, .reserve = reserve};
  const Status local_status = CheckArguments(save->destination(), options, held);
  SEALPOINT_RETURN_IF_ERROR(plans_.Begin("save in the background", local_status, proposal));
  SEALPOINT_RETURN_IF_ERROR(OpenQueue());
  SEALPOINT_RETURN_IF_ERROR(plans_.Agree(proposal));
  const Sources& sources = proposal.sources();
  save->tensor_bytes = grouped.plan->tensor_bytes;
  Status written;
  if (save->destination().may_link()) {
    auto groups = DigestFrozen(InternalAccess::PartsOf(engine_), options_, grouped, sources);
    written = groups.status();
    if (groups.ok()) save->SetFrozen(*std::move(groups));
  }
  if (proposal.any.is_short_of_memory) {
    // Earlier saves hold the staging memory: they must end first, and in this order on all ranks.
    staged.reset();
    recorder.End();
    queue_->Drain();
    Stream(save, *grouped.plan, sources, std::move(written));
  } else {
    recorder.Begin(Phase::kSnapshot, grouped.plan->tensor_bytes);
    if (written.ok()) written = Write(*staged, *grouped.plan, sources);
    recorder.End();  // the snapshot ends now; the background thread may take the save up much later
    save->SetStaged(std::move(staged), std::move(written));
    queue_->Add(save);
  }
  return {};
}

// With a memory budget below the size of the state: the background thread makes the directory
// first, then the state is written while it is being copied. Returns when the last byte is staged.
void SaverImpl::Stream(const std::shared_ptr<BackgroundSave>& save, const SavePlan& plan,
                       const Sources& sources, Status local_status) {
  queue_->Add(save);
  queue_->DriveUntil(*save, [&] { return save->is_bound() || queue_->IsOver(*save); });
  // The save is over, but its thread may still come to where it waits for the state.
  if (!save->is_bound()) {
    return save->SetStaged(MakeError(Code::kCancelled, "the save ended before it took the state"));
  }
  if (local_status.ok()) {
    const auto& linked = save->linked_groups();
    local_status =
        Write(*save->writer(), WithoutGroups(plan, sources.declaration(), linked), sources);
  }
  save->SetStaged(std::move(local_status));
}

Result<GroupedPlan> SaverImpl::Group(const LocalPlan& local_plan, const Destination& destination,
                                     const Sources& sources) {
  if (!options_.learn_frozen || !destination.may_link())
    return GroupedPlan{.plan = local_plan.plan};
  return learned_.Look(InternalAccess::PartsOf(engine_), options_, local_plan.declaration,
                       local_plan.plan, sources);
}

// Precondition: the ranks agreed on the plan.
Result<std::shared_ptr<const SavePlan>> SaverImpl::LinkFrozen(const Destination& destination,
                                                              SaveRun& run,
                                                              const LocalPlan& local_plan,
                                                              const Sources& sources) {
  SEALPOINT_ASSIGN_OR_RETURN(const GroupedPlan grouped, Group(local_plan, destination, sources));
  if (run.attempt().parent_directory.empty()) return grouped.plan;  // nothing is digested in vain
  SEALPOINT_ASSIGN_OR_RETURN(
      const std::vector<FrozenGroup> groups,
      DigestFrozen(InternalAccess::PartsOf(engine_), options_, grouped, sources));
  SEALPOINT_ASSIGN_OR_RETURN(const std::set<std::string> linked, run.LinkFrozen(groups));
  if (linked.empty()) return grouped.plan;
  return std::make_shared<const SavePlan>(
      WithoutGroups(*grouped.plan, sources.declaration(), linked));
}

// Null if the budget does not hold all that this rank writes.
std::unique_ptr<writer::StagedWriter> SaverImpl::ReserveStaging(
    const SavePlan& plan, const Destination& destination, const SaveOptions& options,
    const Sources& sources, observe::PhaseRecorder& recorder) const {
  pipeline::EngineParts& parts = InternalAccess::PartsOf(engine_);
  const std::uint64_t part_size = parts.storage->part_size_bytes(destination.written_path());
  const std::uint64_t count = BuffersFor(parts, options_, plan, sources, part_size);
  if (!parts.TryReserve(count)) return nullptr;
  return std::make_unique<writer::StagedWriter>(
      parts, count, WriterOptionsOf(options_, options, recorder), part_size);
}

Status SaverImpl::OpenQueue() {
  if (queue_) return {};
  SEALPOINT_ASSIGN_OR_RETURN(auto duplicate, comm_.DuplicateForBackground());
  queue_ = SaveQueue::Create(engine_, std::move(duplicate));
  return {};
}

Status SaverImpl::CheckUsable() const {
  SEALPOINT_RETURN_IF_ERROR(broken_);
  return queue_ ? queue_->usable() : Status();
}

Status SaverImpl::CheckArguments(const Destination& destination, const SaveOptions& options,
                                 const Sources& sources) const {
  const Status& failure = options.failure.ok() ? sources.failure() : options.failure;
  // Comm and Timeout are of a saver whose ranks may be anywhere; these ranks are here.
  if (comm::IsCommFailure(failure)) {
    return MakeError(Code::kCancelled, failure.message()).AtPath(failure.place().path);
  }
  SEALPOINT_RETURN_IF_ERROR(failure);
  SEALPOINT_RETURN_IF_ERROR(writer::CheckDescription(options.mesh, options.provenance));
  SEALPOINT_RETURN_IF_ERROR(destination.CheckArguments());
  SEALPOINT_RETURN_IF_ERROR(plans_.CheckDeclarations(options, sources));
  return CheckSources(sources);
}

}  // namespace
}  // namespace internal::saver

Result<std::unique_ptr<Saver>> Saver::Create(Engine& engine, Communicator& communicator,
                                             SaverOptions options) {
  SEALPOINT_RETURN_IF_ERROR(InternalAccess::PartsOf(engine).CheckUsable());
  SEALPOINT_RETURN_IF_ERROR(internal::saver::CheckOptions(options, communicator.size()));
  return std::unique_ptr<Saver>(
      std::make_unique<internal::saver::SaverImpl>(engine, communicator, std::move(options)));
}

}  // namespace sealpoint
