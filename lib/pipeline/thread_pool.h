// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_THREAD_POOL_H_
#define SEALPOINT_LIB_PIPELINE_THREAD_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "sealpoint/limits.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::pipeline {

// InvalidArgument unless `count`, the value of the option `name`, is kThreadsAuto or in
// [1, kThreadsMax].
Status CheckThreads(std::string_view name, int count);

// The value of a thread option that was checked: `automatic` for kThreadsAuto.
inline int ChosenThreads(int count, int automatic) {
  return count == kThreadsAuto ? automatic : count;
}

// A fixed set of threads that begin jobs in the order of submission. The threads start with the
// first job. If the system refuses some of them, the others are used, and without any Submit runs
// the job itself. So a job must not wait for other jobs of the same pool, nor for a lock that the
// submitter holds, and it must not throw. Thread safety: all functions.
class ThreadPool {
 public:
  // Precondition: thread_count >= 1.
  explicit ThreadPool(int thread_count);
  ~ThreadPool();  // Runs all submitted jobs, then joins.

  void Submit(std::function<void()> job);
  int thread_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Runs body(worker, i) for each i in [0, count), worker in [0, workers), on up to `workers`
// threads, the calling one included. Calls with the same `worker` never overlap. Indices are handed
// out in ascending order. After a failure no new index is begun. Returns the failure with the
// smallest index, so that the outcome depends on timing as little as possible.
Status ParallelFor(int workers, std::size_t count,
                   const std::function<Status(int worker, std::size_t index)>& body);

}  // namespace sealpoint::internal::pipeline

#endif  // SEALPOINT_LIB_PIPELINE_THREAD_POOL_H_
