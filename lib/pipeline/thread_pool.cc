// SPDX-License-Identifier: Apache-2.0
#include "lib/pipeline/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "sealpoint/limits.h"

namespace sealpoint::internal::pipeline {
namespace {

// Starts up to `count` threads that run `body`; fewer if the system refuses more.
template <typename Body>
void StartThreads(int count, std::vector<std::thread>& threads, const Body& body) {
  for (int i = 0; i < count; ++i) {
    try {
      threads.emplace_back(body, i);
    } catch (const std::system_error&) {
      return;
    }
  }
}

}  // namespace

Status CheckThreads(std::string_view name, int count) {
  if (count == kThreadsAuto || (count >= 1 && count <= kThreadsMax)) return {};
  return InvalidArgument(name, " is ", count, ", expected 1 to ", kThreadsMax, " or kThreadsAuto");
}

struct ThreadPool::State {
  int thread_count = 0;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> jobs;
  bool stopping = false;
  std::vector<std::thread> threads;  // touched by Submit under `mutex` and by the destructor

  void Work() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return stopping || !jobs.empty(); });
      // Not `if (stopping)`: jobs that were submitted are run even after the destructor began,
      // since their submitters wait for them.
      if (jobs.empty()) return;
      std::function<void()> job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      job();
      job = nullptr;  // destroys what the job owns without the lock, as that may call Submit
      lock.lock();
    }
  }
};

ThreadPool::ThreadPool(int thread_count) : state_(std::make_unique<State>()) {
  SEALPOINT_CHECK(thread_count >= 1);
  state_->thread_count = thread_count;
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void ThreadPool::Submit(std::function<void()> job) {
  std::unique_lock lock(state_->mutex);
  if (state_->threads.empty()) {
    StartThreads(state_->thread_count, state_->threads,
                 [state = state_.get()](int) { state->Work(); });
  }
  if (state_->threads.empty()) {
    lock.unlock();
    job();  // no thread could be started: slow is better than failing
    return;
  }
  state_->jobs.push_back(std::move(job));
  lock.unlock();
  state_->changed.notify_one();
}

int ThreadPool::thread_count() const { return state_->thread_count; }

Status ParallelFor(int workers, std::size_t count,
                   const std::function<Status(int worker, std::size_t index)>& body) {
  SEALPOINT_CHECK(workers >= 1);
  if (count == 0) return {};
  workers = static_cast<int>(std::min(static_cast<std::size_t>(workers), count));

  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::optional<std::pair<std::size_t, Status>> first;  // the failure with the smallest index
  const auto work = [&](int worker) {
    while (!failed.load()) {
      const std::size_t index = next.fetch_add(1);
      if (index >= count) return;
      Status status = body(worker, index);
      if (status.ok()) continue;
      failed.store(true);
      const std::lock_guard lock(mutex);
      if (!first || index < first->first) first.emplace(index, std::move(status));
    }
  };
  std::vector<std::thread> threads;
  StartThreads(workers - 1, threads, [&work](int i) { work(i + 1); });
  work(0);
  for (std::thread& thread : threads) thread.join();
  return first ? std::move(first->second) : Status();
}

}  // namespace sealpoint::internal::pipeline
