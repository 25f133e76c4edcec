// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "device_kernels.h"
#include "sealpoint/status.h"

namespace char_lm {

// The part of the driver API that is used here, found with dlopen: the program starts without it.
#define CHAR_LM_CUDA_FUNCTIONS(X) \
  X(cuInit)                       \
  X(cuGetErrorName)               \
  X(cuDeviceGetCount)             \
  X(cuDeviceGet)                  \
  X(cuDevicePrimaryCtxRetain)     \
  X(cuCtxPushCurrent)             \
  X(cuCtxPopCurrent)              \
  X(cuStreamCreate)               \
  X(cuStreamDestroy)              \
  X(cuStreamSynchronize)          \
  X(cuMemAlloc)                   \
  X(cuMemFree)                    \
  X(cuMemcpyHtoDAsync)            \
  X(cuMemcpyDtoHAsync)            \
  X(cuModuleLoadData)             \
  X(cuModuleGetFunction)          \
  X(cuLaunchKernel)

struct CudaDriver {
#define CHAR_LM_MEMBER(function) decltype(&::function) function = nullptr;
  CHAR_LM_CUDA_FUNCTIONS(CHAR_LM_MEMBER)
#undef CHAR_LM_MEMBER
};

// A CUDA device and one stream, on which everything here is queued. Its primary context is current
// on the thread that made it, which is the only one to use it, and stays retained until the process
// ends. A call of the driver that fails later than in Open ends the process.
class CudaDevice {
 public:
  static sealpoint::Result<std::unique_ptr<CudaDevice>> Open(std::size_t rank);
  ~CudaDevice();
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] CUstream stream() const { return stream_; }

  [[nodiscard]] CUdeviceptr Allocate(std::size_t size_bytes) const;
  void Free(CUdeviceptr address) const;
  // All three only queue: memory of the host must stay as it is until Synchronize.
  void CopyToDevice(std::span<const std::byte> from, CUdeviceptr to) const;
  void CopyToHost(CUdeviceptr from, std::span<std::byte> to) const;
  template <typename Job>
  void Launch(const Job& job) const {
    Job argument = job;
    Launch(jobs::KernelName(job), job.ThreadCount(), &argument);
  }
  void Synchronize() const;

 private:
  CudaDevice() = default;
  sealpoint::Status OpenContext(std::size_t rank);
  sealpoint::Status LoadKernels();
  [[nodiscard]] sealpoint::Status ToStatus(CUresult result, const char* call) const;
  void Check(CUresult result, const char* call) const;
  void Launch(const char* kernel, std::size_t thread_count, void* job) const;

  CudaDriver driver_;
  int number_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::map<std::string, CUfunction, std::less<>> kernels_;
};

// An array in the memory of a device.
template <typename T>
class DeviceArray {
 public:
  // The content is undefined.
  DeviceArray(const CudaDevice& device, std::size_t size)
      : device_(device), size_(size), address_(size == 0 ? 0 : device.Allocate(size * sizeof(T))) {}
  ~DeviceArray() {
    if (address_ != 0) {
      device_.Free(address_);
    }
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }
  // For kernels and for Sealpoint; not to be read or written on the host.
  [[nodiscard]] T* data() const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address_));
  }
  [[nodiscard]] std::span<T> span() const { return {data(), size_}; }

  // Of the whole array; queued only.
  void CopyFrom(std::span<const T> host) const {
    device_.CopyToDevice(std::as_bytes(host), address_);
  }
  void CopyTo(std::span<T> host) const {
    device_.CopyToHost(address_, std::as_writable_bytes(host));
  }

 private:
  const CudaDevice& device_;
  const std::size_t size_;
  const CUdeviceptr address_;
};

}  // namespace char_lm
