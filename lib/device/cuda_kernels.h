// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_KERNELS_H_
#define SEALPOINT_LIB_DEVICE_CUDA_KERNELS_H_

#include <array>
#include <cstdint>

#include "lib/device/cuda_device.h"

namespace sealpoint::internal::device {

// The kernels of the device, loaded on first use. Errors, which are remembered: Device (this build
// has no kernels, or the driver rejects them).
Result<CudaKernels> LoadKernels(CudaDevice& device);

// Queues a kernel whose threads have the numbers [0, thread_count) and the argument `job`.
template <typename Job>
Status Launch(const CudaDevice& device, cuda::Function* kernel, std::uint64_t thread_count,
              unsigned block_threads, Job job, cuda::Stream* stream) {
  if (thread_count == 0) return {};
  const auto blocks = static_cast<unsigned>((thread_count + block_threads - 1) / block_threads);
  std::array<void*, 1> parameters = {&job};
  return device.Check(device.driver.launch_kernel(kernel, blocks, 1, 1, block_threads, 1, 1, 0,
                                                  stream, parameters.data(), nullptr),
                      "cuLaunchKernel");
}

template <typename T>
T* DevicePointer(cuda::Address address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));  // NOLINT: an address
}

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_CUDA_KERNELS_H_
