// SPDX-License-Identifier: Apache-2.0
#include "tests/support/device/serial_worker.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace sealpoint::testing {

struct SerialWorker::State {
  const pid_t owner = getpid();
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  std::uint64_t pushed = 0;
  std::uint64_t done = 0;
  bool stopping = false;
  std::thread thread;

  void Run() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopping || !jobs.empty(); });
      if (jobs.empty()) return;
      const std::function<void()> job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job();
      lock.lock();
      ++done;
      changed.notify_all();
    }
  }
};

SerialWorker::SerialWorker() : state_(std::make_unique<State>()) {
  state_->thread = std::thread([state = state_.get()] { state->Run(); });
}

SerialWorker::~SerialWorker() {
  if (!IsHere()) {
    state_.release();  // NOLINT(bugprone-unused-return-value): the thread stayed with the parent
    return;
  }
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

std::uint64_t SerialWorker::Push(std::function<void()> job) {
  const std::lock_guard lock(state_->mutex);
  state_->jobs.push_back(std::move(job));
  state_->changed.notify_all();
  return ++state_->pushed;
}

std::uint64_t SerialWorker::pushed() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pushed;
}

bool SerialWorker::IsDone(std::uint64_t position) const {
  const std::lock_guard lock(state_->mutex);
  return state_->done >= position;
}

void SerialWorker::WaitFor(std::uint64_t position) const {
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return state_->done >= position; });
}

bool SerialWorker::IsHere() const { return getpid() == state_->owner; }

}  // namespace sealpoint::testing
