// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/saver.h"

#include <chrono>
#include <memory>
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
#include "lib/saver/foreground_save.h"
#include "lib/saver/frozen_blobs.h"
#include "lib/saver/plan_agreement.h"
#include "lib/saver/promotion_queue.h"
#include "lib/saver/reuse.h"
#include "lib/saver/save_call.h"
#include "lib/saver/save_queue.h"
#include "lib/saver/save_run.h"
#include "lib/saver/stager.h"
#include "lib/saver/write_sources.h"
#include "lib/writer/commit_steps.h"

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
  Status CheckArguments(const Destination& destination, const SaveOptions& options,
                        const Sources& sources) const;
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
  observe::PhaseRecorder recorder(options_.on_phase, options.step);
  recorder.Begin(Phase::kPreflight);
  const auto destination = MakeDestination(engine_.storage(), target, options, promotions_);
  Status local_status = CheckArguments(*destination, options, sources);
  if (local_status.ok()) local_status = recorder.failure();
  ForegroundSave save(options_, plans_, ReuseFor(*destination),
                      {.target = target, .options = options, .held = sources}, local_status,
                      recorder);
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
  Proposal proposal{.target = target,
                    .options = options,
                    .held = held,
                    .reserve = [&](const LocalPlan& local_plan, const Sources& sources) {
                      return stager.Reserve(local_plan, sources);
                    }};
  const Status local_status = CheckArguments(save->destination(), options, held);
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
