// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cuda_events.h"

#include "lib/base/macros.h"

namespace sealpoint::internal {

void CudaEvents::DestroyIdle() {
  const std::lock_guard lock(mutex_);
  for (cuda::Event* const event : idle_) device_.driver.event_destroy(event);
  idle_.clear();
}

Result<std::shared_ptr<cuda::Event>> CudaEvents::Take() {
  cuda::Event* event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      event = idle_.back();
      idle_.pop_back();
    }
  }
  if (event == nullptr) {
    // A thread that waits for one sleeps: its core belongs to the training.
    constexpr unsigned kFlags = cuda::kEventDisableTiming | cuda::kEventBlockingSync;
    SEALPOINT_RETURN_IF_ERROR(
        device_.Check(device_.driver.event_create(&event, kFlags), "cuEventCreate"));
  }
  return std::shared_ptr<cuda::Event>(event, [this](cuda::Event* used) { GiveBack(used); });
}

void CudaEvents::GiveBack(cuda::Event* event) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(event);
}

}  // namespace sealpoint::internal
