// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/pending_save.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace sealpoint::internal {
namespace {

class PendingSaveImpl final : public PendingSave {
 public:
  PendingSaveImpl(std::shared_ptr<SaveQueue> queue, std::shared_ptr<BackgroundSave> save)
      : queue_(std::move(queue)), save_(std::move(save)) {}
  ~PendingSaveImpl() override;

  SaveState Poll() override;
  Result<CommitInfo> Wait() override;
  bool WaitFor(std::chrono::milliseconds longest) override;
  bool ends_by_itself() const override { return !queue_->needs_progress(); }
  void Cancel() override { save_->Cancel(); }

 private:
  const std::shared_ptr<SaveQueue> queue_;
  const std::shared_ptr<BackgroundSave> save_;
  std::atomic<bool> is_heard_ = false;  // Wait returned the outcome
};

// A child has no part in the save, and its parent says what became of it.
PendingSaveImpl::~PendingSaveImpl() {
  if (!queue_->CheckProcess().ok()) return;
  if (!save_->result()) {
    save_->Cancel();
  } else if (!is_heard_) {
    save_->SayUnheard();
  }
}

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
  is_heard_ = true;
  return *save_->result();
}

bool PendingSaveImpl::WaitFor(std::chrono::milliseconds longest) {
  using Clock = std::chrono::steady_clock;
  // How late the end of a save past its deadline may be noticed.
  constexpr std::chrono::milliseconds kLookEvery(100);
  if (!queue_->CheckProcess().ok()) return true;
  const auto end = Clock::now() + longest;
  while (!queue_->IsOver(*save_)) {
    const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    save_->WaitForChange(std::min<std::chrono::microseconds>(left, kLookEvery));
  }
  return true;
}

}  // namespace

std::unique_ptr<PendingSave> MakePendingSave(std::shared_ptr<SaveQueue> queue,
                                             std::shared_ptr<BackgroundSave> save) {
  return std::make_unique<PendingSaveImpl>(std::move(queue), std::move(save));
}

}  // namespace sealpoint::internal
