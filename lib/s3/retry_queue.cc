// SPDX-License-Identifier: Apache-2.0
#include "lib/s3/retry_queue.h"

#include <unistd.h>

#include <utility>

namespace sealpoint::internal::s3 {

RetryQueue::~RetryQueue() {
  if (!thread_.joinable()) return;
  if (getpid() != process_) {
    thread_.detach();  // it did not come along with fork()
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RetryQueue::After(std::chrono::milliseconds wait, std::function<void()> function) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.emplace(std::chrono::steady_clock::now() + wait, std::move(function));
    if (!thread_.joinable()) {
      process_ = getpid();
      thread_ = std::thread([this] { Run(); });
    }
  }
  changed_.notify_all();
}

void RetryQueue::Run() {
  std::unique_lock lock(mutex_);
  while (!is_ending_) {
    if (waiting_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto next = waiting_.begin();
    if (next->first > std::chrono::steady_clock::now()) {
      const auto due = next->first;
      changed_.wait_until(lock, due);
      continue;
    }
    const std::function<void()> function = std::move(next->second);
    waiting_.erase(next);
    lock.unlock();
    function();
    lock.lock();
  }
}

}  // namespace sealpoint::internal::s3
