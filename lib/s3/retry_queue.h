// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_S3_RETRY_QUEUE_H_
#define SEALPOINT_LIB_S3_RETRY_QUEUE_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

namespace sealpoint::internal::s3 {

// Runs functions later, one at a time, on a thread started by the first of them. The destructor
// discards functions that have not run.
class RetryQueue {
 public:
  RetryQueue() = default;
  ~RetryQueue();
  RetryQueue(const RetryQueue&) = delete;
  RetryQueue& operator=(const RetryQueue&) = delete;

  void After(std::chrono::milliseconds wait, std::function<void()> function);

 private:
  void Run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<std::chrono::steady_clock::time_point, std::function<void()>> waiting_;
  bool is_ending_ = false;
  std::thread thread_;
  int process_ = 0;  // of the thread
};

}  // namespace sealpoint::internal::s3

#endif  // SEALPOINT_LIB_S3_RETRY_QUEUE_H_
