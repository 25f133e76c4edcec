// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_EVENTS_H_
#define SEALPOINT_LIB_DEVICE_CUDA_EVENTS_H_

#include <memory>
#include <mutex>
#include <vector>

#include "lib/device/cuda_device.h"

namespace sealpoint::internal {

// Events of a device that are used again: making one costs more than recording it. All calls with
// the device's context current. Thread safety: all functions.
class CudaEvents {
 public:
  explicit CudaEvents(CudaDevice& device) : device_(device) {}
  ~CudaEvents() = default;
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;

  // Comes back when the last owner lets go.
  Result<std::shared_ptr<cuda::Event>> Take();
  // Of those that have come back. What is not destroyed so is left to the process's end.
  void DestroyIdle();

 private:
  void GiveBack(cuda::Event* event);

  CudaDevice& device_;
  std::mutex mutex_;
  std::vector<cuda::Event*> idle_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_DEVICE_CUDA_EVENTS_H_
