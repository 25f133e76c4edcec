// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/saver.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/base/wire.h"
#include "lib/comm/agree.h"
#include "lib/comm/same_call.h"
#include "lib/observe/phase_recorder.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/saver/background_save.h"
#include "lib/saver/compare_replicas.h"
#include "lib/saver/fast_check_declarations.h"
#include "lib/saver/find_replicas.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/full_check_declarations.h"
#include "lib/saver/learned_frozen.h"
#include "lib/saver/promotion_queue.h"
#include "lib/saver/save_call.h"
#include "lib/saver/save_plan.h"
#include "lib/saver/save_queue.h"
#include "lib/saver/save_run.h"
#include "lib/saver/staged_commit.h"
#include "lib/saver/write_sources.h"
#include "lib/storage/place.h"
#include "lib/writer/commit_steps.h"
#include "lib/writer/staged_writer.h"
#include "lib/writer/state_writer.h"

namespace sealpoint {
namespace internal::saver {
namespace {

// What this rank contributes to the agreement on a plan.
struct LocalPlan {
  Digest declaration{};
  bool is_changed = false;  // since the last agreement
  std::shared_ptr<const SavePlan> plan{};
};

// What the ranks reduce to the maximum before they agree on anything else.
struct Flags {
  bool is_changed = false;  // the declaration
  bool is_short_of_memory = false;
  bool may_be_saved = false;  // something is declared, or need not be
};

// The flags of the plan that this rank is about to contribute.
Flags FlagsOf(const Result<LocalPlan>& local_plan, const Declaration& declaration, bool allow_empty,
              bool is_short_of_memory = false) {
  const bool declares_any = !declaration.tensors().empty() || !declaration.objects().empty();
  return {.is_changed = local_plan.ok() && local_plan->is_changed,
          .is_short_of_memory = is_short_of_memory,
          .may_be_saved = declares_any || allow_empty};
}

comm::CallFlags Encode(const Flags& flags, const Status& local_status) {
  return {local_status.ok() ? 0u : 1u, flags.is_changed ? 1u : 0u,
          flags.is_short_of_memory ? 1u : 0u, flags.may_be_saved ? 1u : 0u};
}

class SaverImpl final : public Saver {
 public:
  SaverImpl(Engine& engine, Communicator& comm, SaverOptions options)
      : engine_(engine),
        comm_(comm),
        options_(std::move(options)),
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
  Status CheckArguments(const SaveTarget& target, const SaveOptions& options,
                        const Sources& sources) const;
  // Collective: the first exchange of a save. An error of any rank becomes the error of all.
  // No exchange if the caller compared the call (SaveOptions::declarations); an error of this rank
  // is then still to be told.
  Result<Flags> Begin(std::string_view kind, const SaveTarget& target, const SaveOptions& options,
                      const Flags& flags, const Status& local_status);
  // Collective. The same once more, if the local plan became known only after the first exchange.
  Result<Flags> Reduce(const Flags& flags, const Status& local_status);
  Result<Flags> TakeMaxima(const comm::CallFlags& maxima, const Status& local_status);
  // Collective. What is saved instead of `sources` if the saver finds replicas; borrows from
  // found_. `is_changed`: any rank's declaration since it last searched. A rank with an error of
  // its own only takes part, and gets its sources back.
  Result<Sources> FindReplicas(bool is_changed, const SaveOptions& options, const Sources& sources,
                               const Status& local_status);
  // Before the first exchange: what this rank proposes then, and the flags of that.
  Result<LocalPlan> MakeFirstPlan(const Status& local_status, const Sources& held) const;
  Flags FirstFlags(const Result<LocalPlan>& local_plan, const Sources& held, bool allow_empty,
                   bool is_short_of_memory = false) const;
  Result<LocalPlan> MakePlan(const Declaration& declaration) const;
  // Collective, after AgreeOnPlan. `held` are the sources of the caller, `planned` what is saved.
  Status CompareReplicas(const Sources& held, const Declaration& planned);
  // Collective. `any` are the flags of the ranks' proposals, of which none is an error.
  Status AgreeOnPlan(const Flags& any, const LocalPlan& local_plan, const Declaration& declaration);
  Result<CommitInfo> RunInForeground(const SaveTarget& target, const SaveOptions& options,
                                     SaveRun& run, const Status& local_status, const Sources& held,
                                     observe::PhaseRecorder& recorder);
  Status OpenQueue();
  // Collective. From the first exchange until the state is copied, and the save queued.
  Status StageInBackground(const SaveTarget& target, const SaveOptions& options,
                           const Sources& held_sources,
                           const std::shared_ptr<BackgroundSave>& save);
  // The plan of a save as this rank writes it. Not collective.
  Result<GroupedPlan> Group(const LocalPlan& local_plan, bool is_staged, const Sources& sources);
  std::unique_ptr<writer::StagedWriter> ReserveStaging(const SavePlan& plan,
                                                       const SaveTarget& target,
                                                       const SaveOptions& options,
                                                       const Sources& sources,
                                                       observe::PhaseRecorder& recorder) const;
  // `local_status`: of what this rank did before.
  void Stream(const std::shared_ptr<BackgroundSave>& save, const SavePlan& plan,
              const Sources& sources, Status local_status);
  // What is to be written of the plan, after blobs of the parent were linked. Not collective.
  Result<std::shared_ptr<const SavePlan>> LinkFrozen(SaveRun& run, const LocalPlan& local_plan,
                                                     const Sources& sources);
  Status Write(writer::StateWriter& writer, const SavePlan& plan, const Sources& sources) const {
    return WriteSources(options_, writer, plan, sources);
  }

  Engine& engine_;
  Communicator& comm_;
  SaverOptions options_;
  // The plan of the last declaration that all ranks agreed on, and its key. One entry only: the
  // agreement was on what all ranks declared at the same time.
  std::optional<Digest> planned_for_;
  std::shared_ptr<const SavePlan> plan_;
  // If the saver finds replicas: those of the last declaration that was searched, and its key.
  std::optional<Digest> searched_for_;
  std::optional<Digest> searched_among_;  // SaveOptions::declarations of that search
  std::optional<FoundReplicas> found_;
  std::optional<ItemsByHolders> shared_;  // what is compared; absent if plan or replicas changed
  LearnedFrozen learned_;                 // of the plan of this rank
  Status broken_;  // the communicator failed; ranks may disagree on where they are
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
  observe::PhaseRecorder recorder(options_.on_progress, options.step);
  recorder.Begin(Phase::kPreflight);
  Status local_status = CheckArguments(target, options, sources);
  if (local_status.ok()) local_status = recorder.failure();
  SaveRun run(engine_, comm_, options_, target, options, recorder, *frozen_);
  Result<CommitInfo> result =
      RunInForeground(target, options, run, local_status, sources, recorder);
  recorder.End();
  if (!run.broken().ok()) broken_ = run.broken();
  if (result.ok()) result->report = recorder.report();
  if (result.ok() && !target.local.empty()) promotions_->Add(run.TakeStaged());
  return result;
}

// A rank whose arguments are wrong still takes part in the first exchange and returns from it with
// the error of all; from then on each step is agreed on before the next begins. The free-space
// check comes last before the first byte, because it needs the plan (R-CMT-08).
Result<CommitInfo> SaverImpl::RunInForeground(const SaveTarget& target, const SaveOptions& options,
                                              SaveRun& run, const Status& local_status,
                                              const Sources& held,
                                              observe::PhaseRecorder& recorder) {
  auto local_plan = MakeFirstPlan(local_status, held);
  auto any = Begin("save", target, options, FirstFlags(local_plan, held, run.allows_empty()),
                   local_plan.status());
  if (!any.ok()) return run.NoteFailure(any.error());
  const auto check = [&] { return recorder.failure(); };
  Status ready = local_plan.status();
  if (ready.ok() && run.is_staged()) ready = promotions_->MakeRoom(check);
  SEALPOINT_RETURN_IF_ERROR(run.Preflight(ready));
  recorder.Begin(Phase::kPlan);
  std::optional<Sources> selected;
  if (options_.find_replicas) {
    auto found = FindReplicas(any->is_changed, options, held, {});
    if (!found.ok()) return run.Fail(nullptr, found.error());
    selected = *std::move(found);
    local_plan = MakePlan(selected->declaration());
    any = Reduce(FlagsOf(local_plan, selected->declaration(), run.allows_empty()),
                 local_plan.status());
    if (!any.ok()) return run.Fail(nullptr, any.error());
  }
  const Sources& sources = selected ? *selected : held;
  Status status = AgreeOnPlan(*any, *local_plan, sources.declaration());
  if (status.ok()) status = CompareReplicas(held, sources.declaration());
  if (!status.ok()) return run.Fail(nullptr, std::move(status));
  const auto plan = LinkFrozen(run, *local_plan, sources);
  const std::uint64_t bytes = plan.ok() ? (*plan)->tensor_bytes : 0;
  status = run.CheckFreeSpace(bytes);
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
                                                          const Sources& held_sources) {
  SEALPOINT_RETURN_IF_ERROR(InternalAccess::PartsOf(engine_).CheckUsable());
  SEALPOINT_RETURN_IF_ERROR(CheckUsable());
  const auto save =
      std::make_shared<BackgroundSave>(options_, target, options, promotions_, frozen_);
  save->recorder().Begin(Phase::kPlan);
  Status staged = StageInBackground(target, options, held_sources, save);
  if (staged.ok()) return MakePendingSave(queue_, save);
  const std::string during = DescribeSave(target, options, save->recorder().current_phase());
  return NoteBroken(broken_, comm::DescribeCommFailure(comm_, std::move(staged), during));
}

Status SaverImpl::StageInBackground(const SaveTarget& target, const SaveOptions& options,
                                    const Sources& held_sources,
                                    const std::shared_ptr<BackgroundSave>& save) {
  observe::PhaseRecorder& recorder = save->recorder();
  const Status local_status = CheckArguments(target, options, held_sources);
  auto local_plan = MakeFirstPlan(local_status, held_sources);
  GroupedPlan grouped;
  std::unique_ptr<writer::StagedWriter> staged;
  // Fails the local plan, and so the exchange that follows, if the memory cannot be digested.
  const auto reserve = [&](const Sources& sources) {
    if (!local_plan.ok() || !local_plan->plan) return true;
    auto result = Group(*local_plan, !target.local.empty(), sources);
    if (!result.ok()) {
      local_plan = std::move(result).error();
      return true;
    }
    grouped = std::move(result).value();
    staged = ReserveStaging(*grouped.plan, target, options, sources, recorder);
    return staged == nullptr;
  };
  bool is_short = reserve(held_sources);
  SEALPOINT_ASSIGN_OR_RETURN(
      Flags any, Begin("save in the background", target, options,
                       FirstFlags(local_plan, held_sources, options.allow_empty, is_short),
                       local_plan.status()));
  SEALPOINT_RETURN_IF_ERROR(OpenQueue());
  std::optional<Sources> selected;
  if (options_.find_replicas) {
    SEALPOINT_ASSIGN_OR_RETURN(selected,
                               FindReplicas(any.is_changed, options, held_sources, local_status));
    if (local_status.ok()) local_plan = MakePlan(selected->declaration());
    is_short = reserve(*selected);
    const Flags flags = FlagsOf(local_plan, selected->declaration(), options.allow_empty, is_short);
    SEALPOINT_ASSIGN_OR_RETURN(any, Reduce(flags, local_plan.status()));
  }
  const Sources& sources = selected ? *selected : held_sources;
  SEALPOINT_RETURN_IF_ERROR(AgreeOnPlan(any, *local_plan, sources.declaration()));
  SEALPOINT_RETURN_IF_ERROR(CompareReplicas(held_sources, sources.declaration()));
  save->tensor_bytes = plan_->tensor_bytes;
  Status written;
  if (target.local.empty()) {
    auto groups = DigestFrozen(InternalAccess::PartsOf(engine_), options_, grouped, sources);
    written = groups.status();
    if (groups.ok()) save->SetFrozen(*std::move(groups));
  }
  if (any.is_short_of_memory) {
    // Earlier saves hold the staging memory: they must end first, and in this order on all ranks.
    staged.reset();
    recorder.End();
    queue_->Drain();
    Stream(save, *grouped.plan, sources, std::move(written));
  } else {
    recorder.Begin(Phase::kSnapshot, plan_->tensor_bytes);
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

Result<GroupedPlan> SaverImpl::Group(const LocalPlan& local_plan, bool is_staged,
                                     const Sources& sources) {
  if (!options_.learn_frozen || is_staged) return GroupedPlan{.plan = local_plan.plan};
  return learned_.Look(InternalAccess::PartsOf(engine_), options_, local_plan.declaration,
                       local_plan.plan, sources);
}

// Precondition: the ranks agreed on the plan.
Result<std::shared_ptr<const SavePlan>> SaverImpl::LinkFrozen(SaveRun& run,
                                                              const LocalPlan& local_plan,
                                                              const Sources& sources) {
  SEALPOINT_ASSIGN_OR_RETURN(const GroupedPlan grouped,
                             Group(local_plan, run.is_staged(), sources));
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
    const SavePlan& plan, const SaveTarget& target, const SaveOptions& options,
    const Sources& sources, observe::PhaseRecorder& recorder) const {
  pipeline::EngineParts& parts = InternalAccess::PartsOf(engine_);
  const std::string& path = target.local.empty() ? target.path : target.local;
  const std::uint64_t part_size = parts.storage->part_size_bytes(path);
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

Status SaverImpl::CheckArguments(const SaveTarget& target, const SaveOptions& options,
                                 const Sources& sources) const {
  const Status& failure = options.failure.ok() ? sources.failure() : options.failure;
  // Comm and Timeout are of a saver whose ranks may be anywhere; these ranks are here.
  if (comm::IsCommFailure(failure)) {
    return MakeError(Code::kCancelled, failure.message()).AtPath(failure.place().path);
  }
  SEALPOINT_RETURN_IF_ERROR(failure);
  SEALPOINT_RETURN_IF_ERROR(writer::CheckDescription(options.mesh, options.provenance));
  if (!target.local.empty()) {
    const Storage& storage = *InternalAccess::PartsOf(engine_).storage;
    SEALPOINT_RETURN_IF_ERROR(storage::CheckApart(storage, target.local, storage, target.path));
  }
  if (options.declarations && options.declarations == searched_among_ &&
      searched_for_ != sources.declaration().ComputeDigest()) {
    return InvalidArgument(
        "SaveOptions::declarations is that of the save before, but the "
        "declaration of this rank has changed");
  }
  return CheckSources(sources);
}

// Local arithmetic.
Result<LocalPlan> SaverImpl::MakePlan(const Declaration& declaration) const {
  LocalPlan local_plan{.declaration = declaration.ComputeDigest()};
  local_plan.is_changed = planned_for_ != local_plan.declaration;
  if (!local_plan.is_changed) {
    local_plan.plan = plan_;
    return local_plan;
  }
  SEALPOINT_ASSIGN_OR_RETURN(
      SavePlan plan,
      MakeSavePlan(declaration, comm_.rank(), comm_.size(), options_.writer_ranks,
                   options_.find_replicas && !options_.compare_replicas ? Division::kFirstRank
                                                                        : Division::kEven));
  local_plan.plan = std::make_shared<const SavePlan>(std::move(plan));
  return local_plan;
}

Result<Flags> SaverImpl::Begin(std::string_view kind, const SaveTarget& target,
                               const SaveOptions& options, const Flags& flags,
                               const Status& local_status) {
  if (options.declarations && options_.find_replicas) {
    return Flags{.is_changed = searched_among_ != options.declarations};
  }
  SEALPOINT_ASSIGN_OR_RETURN(const comm::CallFlags maxima,
                             comm::BeginCall(comm_, CallOf(kind, options_, target, options),
                                             Encode(flags, local_status), !local_status.ok()));
  return TakeMaxima(maxima, local_status);
}

Result<Flags> SaverImpl::Reduce(const Flags& flags, const Status& local_status) {
  const comm::CallFlags local_flags = Encode(flags, local_status);
  SEALPOINT_ASSIGN_OR_RETURN(const std::vector<std::uint64_t> maxima,
                             comm_.AllReduceMax({local_flags.begin(), local_flags.end()}));
  comm::CallFlags any{};
  if (maxima.size() != any.size()) return MalformedMessage();
  std::copy(maxima.begin(), maxima.end(), any.begin());
  return TakeMaxima(any, local_status);
}

Result<Flags> SaverImpl::TakeMaxima(const comm::CallFlags& maxima, const Status& local_status) {
  if (maxima[0] != 0) SEALPOINT_RETURN_IF_ERROR(AgreeOnStatus(comm_, local_status));
  return Flags{.is_changed = maxima[1] != 0,
               .is_short_of_memory = maxima[2] != 0,
               .may_be_saved = maxima[3] != 0};
}

Result<LocalPlan> SaverImpl::MakeFirstPlan(const Status& local_status, const Sources& held) const {
  SEALPOINT_RETURN_IF_ERROR(local_status);
  return options_.find_replicas ? Result<LocalPlan>(LocalPlan()) : MakePlan(held.declaration());
}

Flags SaverImpl::FirstFlags(const Result<LocalPlan>& local_plan, const Sources& held,
                            bool allow_empty, bool is_short_of_memory) const {
  Flags flags = FlagsOf(local_plan, held.declaration(), allow_empty, is_short_of_memory);
  if (options_.find_replicas)
    flags.is_changed = searched_for_ != held.declaration().ComputeDigest();
  return flags;
}

// If one rank's declaration changed, all search: its replicas may be on any of them.
Result<Sources> SaverImpl::FindReplicas(bool is_changed, const SaveOptions& options,
                                        const Sources& sources, const Status& local_status) {
  const Declaration& held = sources.declaration();
  if (is_changed) {
    searched_for_.reset();
    searched_among_.reset();
    shared_.reset();
    SEALPOINT_ASSIGN_OR_RETURN(found_,
                               internal::saver::FindReplicas(comm_, held, options_.writer_ranks));
    searched_for_ = held.ComputeDigest();
    searched_among_ = options.declarations;
  }
  if (!local_status.ok()) return sources;
  return SelectSources(*found_, sources);
}

Status SaverImpl::CompareReplicas(const Sources& held, const Declaration& planned) {
  if (!options_.compare_replicas) return {};
  if (!shared_) {
    shared_ = FindSharedItems(planned, found_ ? found_->shared_objects : SharedObjects());
  }
  return internal::saver::CompareReplicas(comm_, InternalAccess::PartsOf(engine_), held, *shared_);
}

// The flags say whether any declaration changed since the last agreement. Only then the
// declarations are checked, fast at first; only if that fails are they exchanged in full, to name
// the fault.
Status SaverImpl::AgreeOnPlan(const Flags& any, const LocalPlan& local_plan,
                              const Declaration& declaration) {
  if (!any.may_be_saved) {
    return InvalidArgument("no rank declares a tensor or an object; see SaveOptions::allow_empty");
  }
  if (!any.is_changed) return {};
  SEALPOINT_ASSIGN_OR_RETURN(const bool agree,
                             FastCheckDeclarations(comm_, declaration, *local_plan.plan,
                                                   options_.writer_ranks, options_.limits));
  if (!agree) {
    SEALPOINT_RETURN_IF_ERROR(FullCheckDeclarations(comm_, declaration, *local_plan.plan,
                                                    options_.writer_ranks, options_.limits));
  }
  plan_ = local_plan.plan;
  planned_for_ = local_plan.declaration;
  shared_.reset();
  return {};
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
