// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/pending_save.h"

#include <optional>
#include <utility>

#include "lib/base/errors.h"
#include "lib/storage/durable.h"

namespace sealpoint::internal {
namespace {

class PendingSaveImpl final : public PendingSave {
 public:
  PendingSaveImpl(std::shared_ptr<SaveQueue> queue, std::shared_ptr<BackgroundSave> save,
                  std::chrono::milliseconds deadline)
      : queue_(std::move(queue)), save_(std::move(save)), deadline_(deadline) {}
  ~PendingSaveImpl() override { save_->Cancel(); }

  SaveState Poll() override;
  Result<CommitInfo> Wait() override;
  void Cancel() override { save_->Cancel(); }

 private:
  bool IsOver();

  const std::shared_ptr<SaveQueue> queue_;
  const std::shared_ptr<BackgroundSave> save_;
  const std::chrono::milliseconds deadline_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

SaveState PendingSaveImpl::Poll() {
  if (!queue_->CheckProcess().ok()) return SaveState::kFailed;
  if (!save_->result()) queue_->Progress();
  if (!IsOver()) return SaveState::kRunning;
  const auto result = save_->result();
  if (result->ok()) return SaveState::kCommitted;
  return OutcomeIsUnknown(result->error()) ? SaveState::kUnknown : SaveState::kFailed;
}

Result<CommitInfo> PendingSaveImpl::Wait() {
  const Status here = queue_->CheckProcess();
  if (!here.ok()) return here;
  queue_->DriveUntil(*save_, [this] { return IsOver(); });
  return *save_->result();
}

bool PendingSaveImpl::IsOver() {
  if (save_->result()) return true;
  const bool has_deadline = deadline_ > std::chrono::milliseconds::zero();
  if (!has_deadline || std::chrono::steady_clock::now() - began_ < deadline_) return false;
  queue_->GiveUp(*save_, MakeError(Code::kTimeout, "a save in the background was not over after ",
                                   deadline_.count(), " ms")
                             .AtRule(kUnknownOutcomeRule));
  return true;
}

}  // namespace

std::unique_ptr<PendingSave> MakePendingSave(std::shared_ptr<SaveQueue> queue,
                                             std::shared_ptr<BackgroundSave> save,
                                             std::chrono::milliseconds deadline) {
  return std::make_unique<PendingSaveImpl>(std::move(queue), std::move(save), deadline);
}

}  // namespace sealpoint::internal
