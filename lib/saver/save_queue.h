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
#include "sealpoint/status.h"

namespace sealpoint::internal {

// The saves of one saver in the background: one thread carries them out one after the other, so a
// save posts nothing before its predecessor's verdict. That thread does the file operations and
// calls collectives; MPI itself is called only in Progress.
//
// Thread safety: all functions are for the training thread.
class SaveQueue {
 public:
  // Starts no thread before the first save. Engine outlives the queue until Close. In a forked
  // child the last owner leaves it as it is.
  static std::shared_ptr<SaveQueue> Create(Engine& engine,
                                           std::unique_ptr<BackgroundCommunicator> comm);
  SaveQueue(const SaveQueue&) = delete;
  SaveQueue& operator=(const SaveQueue&) = delete;

  // Where the system gives no thread the save ends with that error.
  void Add(std::shared_ptr<BackgroundSave> save);
  // Carries on what the background thread waits for, as far as it goes without waiting for other
  // ranks. Local.
  void Progress();
  // Goes on with that until `is_over`, which changes when `save` does. Collective in effect.
  void DriveUntil(const BackgroundSave& save, const std::function<bool()>& is_over);
  // Until all saves have a result, at most until the deadline of the newest.
  void Drain();
  // Whether the save has a result. It gets one, Timeout, if its deadline has passed; then the queue
  // becomes unusable: calls under way and later ones fail, and saves not begun end with an error
  // that says so. Waits for nothing.
  bool IsOver(BackgroundSave& save);
  // Gives up what is unfinished, and waits for the file operation under way. Must be called, by all
  // ranks, before the queue is destroyed; the communicator goes with it. Idempotent.
  void Close();
  // Success, or why no further save can run: the communicator failed, or the queue was closed.
  Status usable() const;

  // InvalidArgument in a forked child.
  Status CheckProcess() const;

 private:
  SaveQueue(Engine& engine, std::unique_ptr<BackgroundCommunicator> comm);
  ~SaveQueue() = default;

  void Work();
  // No further save can run. Precondition: the mutex is held, or there is no thread.
  void Break(const Status& why);

  Engine& engine_;
  const int owner_pid_;
  std::unique_ptr<BackgroundCommunicator> comm_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<BackgroundSave>> waiting_;
  std::shared_ptr<BackgroundSave> newest_;
  std::shared_ptr<BackgroundSave> running_;
  Status unusable_;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_SAVER_SAVE_QUEUE_H_
