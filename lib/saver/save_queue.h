// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_SAVER_SAVE_QUEUE_H_
#define SEALPOINT_LIB_SAVER_SAVE_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "lib/saver/background_save.h"
#include "sealpoint/communicator.h"
#include "sealpoint/engine.h"
#include "sealpoint/saver.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::saver {

// The background saves of one saver, in strict FIFO order: a save posts no collective before its
// predecessor has its verdict, because all ranks must post the same collectives in the same order.
//
// Two threads take part. The background thread runs the saves: it performs the file operations,
// requests collectives, and blocks until they are done. The training thread executes the requested
// collectives in Progress and DriveUntil, so MPI is only ever called from the caller's thread.
//
// Thread safety: all functions except IsOver are for the training thread.
class SaveQueue {
 public:
  // Starts no thread before the first save. Engine must outlive the queue until Close. In a forked
  // child the last owner does not destroy it.
  static std::shared_ptr<SaveQueue> Create(Engine& engine,
                                           std::unique_ptr<BackgroundCommunicator> comm);
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;

  // If the system refuses a thread, the save ends with that error.
  void Add(std::shared_ptr<BackgroundSave> save);
  // Advances the collectives that the background thread waits for. Local; waits a little for the
  // next one, for up to a hundredth of the time since the last call.
  void Progress();
  // Calls Progress until `is_over`, which changes only if `save` does. All ranks must call it,
  // because the collectives of the save end only if every rank advances them.
  void DriveUntil(const BackgroundSave& save, const std::function<bool()>& is_over);
  // Waits until all saves have a result, at most until the deadline of the newest.
  void Drain();
  // True if the save has a result. After its deadline it gets one, Timeout, and the queue becomes
  // unusable: current and later calls fail, and saves that have not begun end with an error that
  // explains this. Does not block.
  bool IsOver(BackgroundSave& save);
  // Cancels unfinished saves and waits for the file operation under way. All ranks must call it
  // before the queue is destroyed; the communicator is destroyed here. Idempotent.
  void Close();
  // BackgroundCommunicator::needs_progress.
  bool needs_progress() const { return needs_progress_; }
  // Success, or why no further save can run: the communicator failed, or the queue was closed.
  Status usable() const;

  // InvalidArgument in a forked child.
  Status CheckProcess() const;

 private:
  SaveQueue(Engine& engine, std::unique_ptr<BackgroundCommunicator> comm);
  ~SaveQueue() = default;

  void Work();
  // Prevents further saves. Precondition: the mutex is held, or there is no thread.
  void Break(const Status& reason);

  Engine& engine_;
  const int owner_pid_;
  const bool needs_progress_;
  mutable std::mutex mutex_;
  std::unique_ptr<BackgroundCommunicator> comm_;  // set to null under the mutex
  std::condition_variable changed_;
  std::deque<std::shared_ptr<BackgroundSave>> waiting_;
  std::shared_ptr<BackgroundSave> newest_;
  std::shared_ptr<BackgroundSave> running_;
  Status unusable_;
  std::chrono::steady_clock::time_point last_progress_{};
  bool is_closed_ = false;
  std::thread thread_;
};

// The user's handle of a queued save.
std::unique_ptr<PendingSave> MakePendingSave(std::shared_ptr<SaveQueue> queue,
                                             std::shared_ptr<BackgroundSave> save);

}  // namespace sealpoint::internal::saver

#endif  // SEALPOINT_LIB_SAVER_SAVE_QUEUE_H_
