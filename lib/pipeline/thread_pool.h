// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_THREAD_POOL_H_
#define SEALPOINT_LIB_PIPELINE_THREAD_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "sealpoint/status.h"

namespace sealpoint::internal {

// A fixed set of threads that begin jobs in the order of submission. Threads start with the first
// job; where the system gives fewer, those are used, and with none Submit runs the job itself. Jobs
// must not wait for other jobs of the same pool and must not throw. Thread safety: all functions.
class ThreadPool {
 public:
  // Precondition: thread_count >= 1.
  explicit ThreadPool(int thread_count);
  ~ThreadPool();  // Runs what was submitted, then joins.

  void Submit(std::function<void()> job);
  int thread_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs body(worker, i) for each i in [0, count), worker in [0, workers), on up to `workers` threads
// (the calling one among them); calls with the same `worker` never overlap. Indices are handed out
// in ascending order. After a failure no new index is begun; returns the failure with the smallest
// index, so that the outcome does not depend on timing more than it must.
Status ParallelFor(int workers, std::size_t count,
                   const std::function<Status(int worker, std::size_t index)>& body);

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_PIPELINE_THREAD_POOL_H_
