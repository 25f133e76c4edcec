// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/pending_save.h"

#include <utility>

namespace sealpoint::internal {
namespace {

class PendingSaveImpl final : public PendingSave {
 public:
  PendingSaveImpl(std::shared_ptr<SaveQueue> queue, std::shared_ptr<BackgroundSave> save)
      : queue_(std::move(queue)), save_(std::move(save)) {}
  ~PendingSaveImpl() override { save_->Cancel(); }

  SaveState Poll() override;
  Result<CommitInfo> Wait() override;
  void Cancel() override { save_->Cancel(); }

 private:
  const std::shared_ptr<SaveQueue> queue_;
  const std::shared_ptr<BackgroundSave> save_;
};

SaveState PendingSaveImpl::Poll() {
  if (!queue_->CheckProcess().ok()) return SaveState::kFailed;
  if (!save_->result()) queue_->Progress();
  if (!queue_->IsOver(*save_)) return SaveState::kRunning;
  const auto result = save_->result();
  if (result->ok()) return SaveState::kCommitted;
  return OutcomeIsUnknown(result->error()) ? SaveState::kUnknown : SaveState::kFailed;
}

Result<CommitInfo> PendingSaveImpl::Wait() {
  const Status here = queue_->CheckProcess();
  if (!here.ok()) return here;
  queue_->DriveUntil(*save_, [this] { return queue_->IsOver(*save_); });
  return *save_->result();
}

}  // namespace

std::unique_ptr<PendingSave> MakePendingSave(std::shared_ptr<SaveQueue> queue,
                                             std::shared_ptr<BackgroundSave> save) {
  return std::make_unique<PendingSaveImpl>(std::move(queue), std::move(save));
}

}  // namespace sealpoint::internal
