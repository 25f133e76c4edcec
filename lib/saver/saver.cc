// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/saver.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
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
#include "lib/saver/plan_agreement.h"
#include "lib/saver/promotion_queue.h"
#include "lib/saver/reuse.h"
#include "lib/saver/save_call.h"
#include "lib/saver/save_queue.h"
#include "lib/saver/save_run.h"
#include "lib/saver/stored_cuts.h"
#include "lib/saver/write_sources.h"
#include "lib/writer/blob_writer_impl.h"
#include "lib/writer/commit_steps.h"
#include "lib/writer/staged_writer.h"

namespace sealpoint {
namespace internal::saver {
namespace {

// The payload of a save on the calling thread: each step reads the sources when its turn comes.
class ForegroundSave final : public Payload {
 public:
  // Borrows everything but `local_status`, which is this rank's own outcome so far.
  ForegroundSave(const SaverOptions& options, PlanAgreement& plans, Reuse& reuse, Proposal proposal,
                 Status local_status, observe::PhaseRecorder& recorder)
      : options_(options),
        plans_(plans),
        reuse_(reuse),
        proposal_(std::move(proposal)),
        local_status_(std::move(local_status)),
        recorder_(recorder) {}

  Status Begin() override { return plans_.Begin("save", local_status_, proposal_); }
  Status Ready() const override { return proposal_.local.status(); }
  Status Plan() override;
  Result<std::span<const FrozenGroup>> FindGroups(const Attempt& attempt) override;
  void Drop(const std::set<std::string>& linked) override;
  std::uint64_t tensor_bytes() const override { return plan_ ? plan_->tensor_bytes : 0; }
  Status Write(const SaveRun& run) override;
  writer::BlobWriterImpl* writer() override { return writer_.get(); }

 private:
  const SaverOptions& options_;
  PlanAgreement& plans_;
  Reuse& reuse_;
  Proposal proposal_;
  const Status local_status_;
  observe::PhaseRecorder& recorder_;
  GroupedPlan grouped_{};
  std::vector<FrozenGroup> groups_{};       // of grouped_
  std::shared_ptr<const SavePlan> plan_{};  // grouped_ without linked groups; null before Drop
  std::unique_ptr<writer::BlobWriterImpl> writer_{};
};

Status ForegroundSave::Plan() {
  recorder_.Begin(Phase::kPlan);
  return plans_.Agree(proposal_);
}

Result<std::span<const FrozenGroup>> ForegroundSave::FindGroups(const Attempt& attempt) {
  SEALPOINT_ASSIGN_OR_RETURN(grouped_, reuse_.Group(*proposal_.local, proposal_.sources()));
  if (!attempt.parent_directory.empty()) {  // nothing is digested in vain
    SEALPOINT_ASSIGN_OR_RETURN(groups_, reuse_.FindGroups(grouped_, proposal_.sources()));
  }
  return std::span<const FrozenGroup>(groups_);
}

void ForegroundSave::Drop(const std::set<std::string>& linked) {
  plan_ = grouped_.plan;
  if (linked.empty()) return;
  plan_ = std::make_shared<const SavePlan>(
      WithoutGroups(*grouped_.plan, proposal_.sources().declaration(), linked));
}

Status ForegroundSave::Write(const SaveRun& run) {
  SEALPOINT_ASSIGN_OR_RETURN(writer_, run.CreateWriter());
  return WriteSources(options_, *writer_, *plan_, proposal_.sources(), proposal_.options.base);
}

// Stages the payload of one background save, on the training thread. The ranks agree on one of the
// two ways (see BackgroundSave): a rank that streams blocks until the background thread has made
// the directory, which is collective, so all ranks must have queued the save by then.
class Stager {
 public:
  // Borrows everything but `save`.
  Stager(pipeline::EngineParts& engine, const SaverOptions& options, Reuse& reuse,
         std::shared_ptr<BackgroundSave> save)
      : engine_(engine), options_(options), reuse_(reuse), save_(std::move(save)) {}

  // For Proposal::reserve: reserves memory for all that this rank writes. Returns true if the
  // budget does not hold it.
  Result<bool> Reserve(const LocalPlan& local_plan, const Sources& sources);
  // After the agreement. Returns when the state is copied and the save is queued. All ranks call
  // it.
  void Stage(const Proposal& proposal, SaveQueue& queue);

 private:
  void StageWhole(const Proposal& proposal, Status local_status, SaveQueue& queue);
  void Stream(const Proposal& proposal, Status local_status, SaveQueue& queue);

  pipeline::EngineParts& engine_;
  const SaverOptions& options_;
  Reuse& reuse_;
  const std::shared_ptr<BackgroundSave> save_;
  GroupedPlan grouped_;
  std::unique_ptr<writer::StagedWriter> writer_;  // null if the memory is short
};

Result<bool> Stager::Reserve(const LocalPlan& local_plan, const Sources& sources) {
  SEALPOINT_ASSIGN_OR_RETURN(grouped_, reuse_.Group(local_plan, sources));
  const std::uint64_t part_size =
      engine_.storage->part_size_bytes(save_->destination().written_path());
  const std::uint64_t count = BuffersFor(engine_, options_, *grouped_.plan, sources, part_size);
  if (!engine_.TryReserve(count)) return true;
  writer_ =
      std::make_unique<writer::StagedWriter>(engine_, count, save_->writer_options(), part_size);
  return false;
}

void Stager::Stage(const Proposal& proposal, SaveQueue& queue) {
  const Sources& sources = proposal.sources();
  auto groups = reuse_.FindGroups(grouped_, sources);
  Status status = groups.status();
  save_->SetPlan(grouped_.plan->tensor_bytes,
                 groups.ok() ? *std::move(groups) : std::vector<FrozenGroup>());
  if (proposal.any.is_short_of_memory) {
    Stream(proposal, std::move(status), queue);
  } else {
    StageWhole(proposal, std::move(status), queue);
  }
}

void Stager::StageWhole(const Proposal& proposal, Status local_status, SaveQueue& queue) {
  observe::PhaseRecorder& recorder = save_->recorder();
  recorder.Begin(Phase::kSnapshot, grouped_.plan->tensor_bytes);
  if (local_status.ok()) {
    local_status =
        WriteSources(options_, *writer_, *grouped_.plan, proposal.sources(), proposal.options.base);
  }
  recorder.End();  // the snapshot ends now; the background thread may take the save up much later
  save_->SetStaged(std::move(writer_), std::move(local_status));
  queue.Add(save_);
}

// With a memory budget below the size of the state: the background thread makes the directory
// first, then the state is written while it is being copied. Returns when the last byte is staged.
void Stager::Stream(const Proposal& proposal, Status local_status, SaveQueue& queue) {
  // Earlier saves hold the staging memory: they must end first, and in this order on all ranks.
  writer_.reset();
  save_->recorder().End();
  queue.Drain();
  queue.Add(save_);
  queue.DriveUntil(*save_, [&] { return save_->is_bound() || queue.IsOver(*save_); });
  // The save is over, but its thread may still come to where it waits for the state.
  if (!save_->is_bound()) {
    return save_->SetStaged(MakeError(Code::kCancelled, "the save ended before it took the state"));
  }
  if (local_status.ok()) {
    const SavePlan rest =
        WithoutGroups(*grouped_.plan, proposal.sources().declaration(), save_->linked_groups());
    local_status =
        WriteSources(options_, *save_->writer(), rest, proposal.sources(), proposal.options.base);
  }
  save_->SetStaged(std::move(local_status));
}

class SaverImpl final : public Saver {
 public:
  SaverImpl(Engine& engine, Communicator& comm, SaverOptions options)
      : engine_(engine),
        comm_(comm),
        options_(std::move(options)),
        cutter_(options_),
        plans_(InternalAccess::PartsOf(engine), comm, options_),
        reuse_(MakeReuse(InternalAccess::PartsOf(engine), options_)),
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
  // This rank's own outcome before the first exchange. `cut` becomes the sources that the save
  // uses, if they differ from `held`.
  Status Prepare(const Destination& destination, const SaveOptions& options, const Sources& held,
                 std::optional<Sources>& cut);
  Status OpenQueue();
  // Collective. From the first exchange until the state is copied, and the save queued.
  Status StageInBackground(const SaveTarget& target, const SaveOptions& options,
                           const Sources& held, const std::shared_ptr<BackgroundSave>& save);
  // A staged save links nothing, whatever the options say.
  Reuse& ReuseFor(const Destination& destination) {
    return destination.may_link() ? *reuse_ : no_reuse_;
  }

  Engine& engine_;
  Communicator& comm_;
  SaverOptions options_;
  SourceCutter cutter_;
  PlanAgreement plans_;
  const std::unique_ptr<Reuse> reuse_;
  Reuse no_reuse_;
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
  const auto destination = MakeDestination(engine_.storage(), target, options, promotions_);
  std::optional<Sources> cut;
  Status local_status = Prepare(*destination, options, sources, cut);
  if (local_status.ok()) local_status = recorder.failure();
  ForegroundSave save(options_, plans_, ReuseFor(*destination),
                      {.target = target, .options = options, .held = cut ? *cut : sources},
                      local_status, recorder);
  SaveRun run(engine_, comm_,
              {.saver = options_,
               .target = target,
               .options = options,
               .destination = *destination,
               .recorder = recorder,
               .frozen = *frozen_});
  Result<CommitInfo> result = run.Run(save);
  if (!run.broken().ok()) broken_ = run.broken();
  return result;
}

// Runs on the training thread and uses the saver's own communicator; the queue has a duplicate of
// it, so these collectives cannot be mixed up with those of saves under way.
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
  Stager stager(InternalAccess::PartsOf(engine_), options_, ReuseFor(save->destination()), save);
  std::optional<Sources> cut;
  const Status local_status = Prepare(save->destination(), options, held, cut);
  Proposal proposal{.target = target,
                    .options = options,
                    .held = cut ? *cut : held,
                    .reserve = [&](const LocalPlan& local_plan, const Sources& sources) {
                      return stager.Reserve(local_plan, sources);
                    }};
  SEALPOINT_RETURN_IF_ERROR(plans_.Begin("save in the background", local_status, proposal));
  SEALPOINT_RETURN_IF_ERROR(OpenQueue());
  SEALPOINT_RETURN_IF_ERROR(plans_.Agree(proposal));
  stager.Stage(proposal, *queue_);
  return {};
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

Status SaverImpl::Prepare(const Destination& destination, const SaveOptions& options,
                          const Sources& held, std::optional<Sources>& cut) {
  SEALPOINT_RETURN_IF_ERROR(
      comm::OwnFailure(options.failure.ok() ? held.failure() : options.failure));
  SEALPOINT_RETURN_IF_ERROR(writer::CheckDescription(options.mesh, options.provenance));
  SEALPOINT_RETURN_IF_ERROR(destination.CheckArguments());
  SEALPOINT_RETURN_IF_ERROR(CheckSources(held));
  SEALPOINT_RETURN_IF_ERROR(CheckBase(options, held));
  SEALPOINT_ASSIGN_OR_RETURN(cut, cutter_.Cut(held));
  if (options.base && (cut || !destination.may_link())) {
    return InvalidArgument("a save ", cut ? "with stored cuts" : "that is staged",
                           " cannot have a base");
  }
  return plans_.CheckDeclarations(options, cut ? *cut : held);
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
