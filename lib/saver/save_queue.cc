// SPDX-License-Identifier: Apache-2.0
#include "lib/saver/save_queue.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::saver {

SaveQueue::SaveQueue(Engine& engine, std::unique_ptr<BackgroundCommunicator> comm)
    : engine_(engine),
      owner_pid_(getpid()),
      needs_progress_(comm->needs_progress()),
      comm_(std::move(comm)) {}

std::shared_ptr<SaveQueue> SaveQueue::Create(Engine& engine,
                                             std::unique_ptr<BackgroundCommunicator> comm) {
  // A child has no thread to end, and what the thread waits on cannot be destroyed there.
  const auto destroy = [](SaveQueue* queue) {
    if (queue->CheckProcess().ok()) delete queue;
  };
  return {new SaveQueue(engine, std::move(comm)), destroy};
}

Status SaveQueue::CheckProcess() const {
  if (getpid() == owner_pid_) return {};
  return InvalidArgument("a save in the background cannot be used in a child after fork");
}

void SaveQueue::Add(std::shared_ptr<BackgroundSave> save) {
  save->StartClock();
  const std::lock_guard lock(mutex_);
  newest_ = save;
  last_progress_ = std::chrono::steady_clock::now();
  waiting_.push_back(std::move(save));
  changed_.notify_all();
  if (thread_.joinable()) return;
  try {
    thread_ = std::thread([this] { Work(); });
  } catch (const std::system_error& error) {
    Break(MakeError(Code::kIo, "no thread for saves in the background: ", error.what()));
    // The other ranks need not wait for this one until their deadline.
    if (comm_) comm_->Interrupt(MakeError(Code::kComm, "a rank left: ", unusable_.message()));
    waiting_.pop_back();
    newest_->End(newest_->Refuse(unusable_));
  }
}

void SaveQueue::Work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_closed_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::shared_ptr<BackgroundSave> save = std::move(waiting_.front());
    waiting_.pop_front();
    const Status unusable = unusable_;
    running_ = save;
    lock.unlock();
    Status broken;
    auto result =
        unusable.ok() ? save->Run(engine_, comm_->communicator(), broken) : save->Refuse(unusable);
    // The queue is marked as broken before the save has its result: a caller that sees the result
    // may begin another save at once, and must get this error instead of a hang.
    lock.lock();
    Break(broken);
    running_.reset();
    // The other ranks get the error now and need not wait for this rank until their deadline.
    if (!broken.ok()) comm_->Interrupt(broken);
    lock.unlock();
    save->End(std::move(result));
    lock.lock();
  }
}

// Keeps the first reason: what follows from it says less.
void SaveQueue::Break(const Status& reason) {
  if (unusable_.ok()) unusable_ = reason;
}

void SaveQueue::Progress() {
  using Clock = std::chrono::steady_clock;
  // After a collective ended, the background thread needs a moment to begin the next one. This
  // thread first spins meanwhile: if it yielded on a busy machine, it would lose the processor for
  // milliseconds. A program whose steps are long gets more done in each of them.
  constexpr std::chrono::microseconds kSpin(50);
  constexpr Clock::duration kLongest = std::chrono::milliseconds(20);
  const auto begin = Clock::now();
  const auto patience = std::clamp<Clock::duration>(
      (begin - std::exchange(last_progress_, begin)) / 100, kSpin, kLongest);
  if (!comm_ || !comm_->Progress()) return;
  for (auto last_move = begin, now = begin; now - last_move < kSpin || now - begin < patience;
       now = Clock::now()) {
    if (comm_->Progress()) {
      last_move = Clock::now();
    } else if (now - last_move >= kSpin) {
      std::this_thread::sleep_for(kSpin);
    }
  }
}

void SaveQueue::DriveUntil(const BackgroundSave& save, const std::function<bool()>& is_over) {
  constexpr std::int64_t kYields = 200;
  constexpr std::int64_t kLongestWaitUs = 200;
  for (std::int64_t idle = 0; !is_over(); ++idle) {
    if (comm_ && comm_->Progress()) {
      idle = 0;
    } else if (idle < kYields) {
      std::this_thread::yield();
    } else {
      save.WaitForChange(std::chrono::microseconds(std::min(kLongestWaitUs, 5 + idle - kYields)));
    }
  }
}

void SaveQueue::Drain() {
  const std::shared_ptr<BackgroundSave> newest = newest_;
  if (newest) DriveUntil(*newest, [&] { return IsOver(*newest); });
}

bool SaveQueue::IsOver(BackgroundSave& save) {
  if (save.result()) return true;
  if (!save.IsLate()) return false;
  const Status reason = save.TimeOut();
  save.End(reason);
  const std::lock_guard lock(mutex_);
  if (comm_) comm_->Interrupt(reason);
  Break(NotBegun("the saver cannot be used after a save that timed out", reason));
  return true;
}

void SaveQueue::Close() {
  {
    const std::lock_guard lock(mutex_);
    const Status reason =
        MakeError(Code::kComm, "the saver was destroyed before the save was over");
    for (const std::shared_ptr<BackgroundSave>& save : waiting_) save->Cancel();
    if (running_) running_->Cancel();
    if (comm_ && (running_ || !waiting_.empty())) comm_->Interrupt(reason);
    Break(reason);
    is_closed_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
  std::unique_ptr<BackgroundCommunicator> unused;
  const std::lock_guard lock(mutex_);
  unused.swap(comm_);
}

Status SaveQueue::usable() const {
  const std::lock_guard lock(mutex_);
  return unusable_;
}

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
    save_->ReportIfUnobserved();
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
  const auto end = Clock::now() + std::min(longest, kLongestWait);
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

}  // namespace sealpoint::internal::saver
