// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_QUEUE_POOL_H_
#define SEALPOINT_LIB_DEVICE_QUEUE_POOL_H_

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/device/device_runtime.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::device {

// Idle copy queues, kept because making one is slow. Thread safety: all functions.
class QueuePool {
 public:
  // Errors: those of DeviceRuntime::MakeQueue.
  Result<std::unique_ptr<CopyQueue>> Take(DeviceRuntime& runtime, int device) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = std::find_if(idle_.begin(), idle_.end(), [device](const auto& queue) {
        return queue->device() == device;
      });
      if (found != idle_.end()) {
        std::unique_ptr<CopyQueue> queue = std::move(*found);
        idle_.erase(found);
        return queue;
      }
    }
    return runtime.MakeQueue(device);
  }
  // Precondition: no operation runs on the queue, and none has failed. Otherwise the next user
  // would see the failure, or its buffer could be overwritten.
  void Return(std::unique_ptr<CopyQueue> queue) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(queue));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<CopyQueue>> idle_;
};

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_QUEUE_POOL_H_
