// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_COLLECTIVE_BACKGROUND_JOB_H_
#define SEALPOINT_READERS_COLLECTIVE_BACKGROUND_JOB_H_

#include <functional>
#include <future>
#include <memory>

#include "lib/pipeline/thread_pool.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// One job at a time on a thread beside the caller's. Without threads Begin runs it. The destructor
// waits for the job, so that what the job uses is declared before.
class BackgroundJob {
 public:
  // Precondition: Wait was called for the job before.
  void Begin(std::function<Status()> job) {
    const auto task = std::make_shared<std::packaged_task<Status()>>(std::move(job));
    result_ = task->get_future();
    threads_.Submit([task] { (*task)(); });
  }
  // What the job returned. An exception of the job is thrown on.
  Status Wait() { return result_.get(); }

 private:
  std::future<Status> result_;
  ThreadPool threads_{1};
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_COLLECTIVE_BACKGROUND_JOB_H_
