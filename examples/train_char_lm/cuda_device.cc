// SPDX-License-Identifier: Apache-2.0
#include "cuda_device.h"

#include <dlfcn.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "cuda_image.h"

namespace char_lm {
namespace {

using sealpoint::Code;
using sealpoint::Status;

constexpr unsigned kBlockThreads = 128;

template <typename Function>
Status Find(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr
             ? Status()
             : Status(Code::kDevice, std::string("the CUDA driver has no ") + symbol);
}

Status LoadDriver(CudaDriver& driver) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // never closed
  if (library == nullptr) {
    const char* const reason = dlerror();
    return {Code::kDevice, std::string("no CUDA driver: ") + (reason != nullptr ? reason : "")};
  }
  // cuda.h makes macros of names that have versions, such as cuMemAlloc_v2: expanded first.
#define CHAR_LM_FIND(function) CHAR_LM_FIND_SYMBOL(function)
#define CHAR_LM_FIND_SYMBOL(symbol)                                        \
  if (Status found = Find(library, #symbol, driver.symbol); !found.ok()) { \
    return found;                                                          \
  }
  CHAR_LM_CUDA_FUNCTIONS(CHAR_LM_FIND)
#undef CHAR_LM_FIND_SYMBOL
#undef CHAR_LM_FIND
  return {};
}

}  // namespace

sealpoint::Result<std::unique_ptr<CudaDevice>> CudaDevice::Open(std::size_t rank) {
  std::unique_ptr<CudaDevice> device(new CudaDevice());
  Status status = LoadDriver(device->driver_);
  if (status.ok()) {
    status = device->OpenContext(rank);
  }
  if (status.ok()) {
    status = device->LoadKernels();
  }
  if (!status.ok()) {
    return status;
  }
  return device;
}

Status CudaDevice::OpenContext(std::size_t rank) {
  int count = 0;
  CUdevice handle = 0;
  CUcontext context = nullptr;
  Status status = ToStatus(driver_.cuInit(0), "cuInit");
  if (status.ok()) {
    status = ToStatus(driver_.cuDeviceGetCount(&count), "cuDeviceGetCount");
  }
  if (status.ok() && count == 0) {
    status = Status(Code::kDevice, "there is no CUDA device");
  }
  if (status.ok()) {
    number_ = static_cast<int>(rank % static_cast<std::size_t>(count));
    status = ToStatus(driver_.cuDeviceGet(&handle, number_), "cuDeviceGet");
  }
  if (status.ok()) {
    status =
        ToStatus(driver_.cuDevicePrimaryCtxRetain(&context, handle), "cuDevicePrimaryCtxRetain");
  }
  if (status.ok()) {
    status = ToStatus(driver_.cuCtxPushCurrent(context), "cuCtxPushCurrent");
  }
  if (status.ok()) {
    context_ = context;
    status = ToStatus(driver_.cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  }
  return status;
}

Status CudaDevice::LoadKernels() {
  CUmodule module = nullptr;  // unloaded with the context
  Status status =
      ToStatus(driver_.cuModuleLoadData(&module, CudaImage().data()), "cuModuleLoadData");
#define CHAR_LM_FIND(Job)                                                         \
  if (status.ok()) {                                                              \
    const char* const name = jobs::KernelName(jobs::Job());                       \
    status = ToStatus(driver_.cuModuleGetFunction(&kernels_[name], module, name), \
                      "cuModuleGetFunction");                                     \
  }
  CHAR_LM_JOBS(CHAR_LM_FIND)
#undef CHAR_LM_FIND
  return status;
}

CudaDevice::~CudaDevice() {
  if (stream_ != nullptr) {
    Synchronize();
    Check(driver_.cuStreamDestroy(stream_), "cuStreamDestroy");
  }
  if (context_ != nullptr) {
    CUcontext popped = nullptr;
    Check(driver_.cuCtxPopCurrent(&popped), "cuCtxPopCurrent");
  }
}

Status CudaDevice::ToStatus(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) {
    return {};
  }
  const char* name = nullptr;
  if (driver_.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    name = "unknown error";
  }
  return {Code::kDevice, std::string(call) + ": " + name};
}

void CudaDevice::Check(CUresult result, const char* call) const {
  if (const Status status = ToStatus(result, call); !status.ok()) {
    std::fprintf(stderr, "CUDA device %d: %s\n", number_, status.message().c_str());
    std::_Exit(EXIT_FAILURE);
  }
}

CUdeviceptr CudaDevice::Allocate(std::size_t size_bytes) const {
  CUdeviceptr address = 0;
  Check(driver_.cuMemAlloc(&address, size_bytes), "cuMemAlloc");
  return address;
}

void CudaDevice::Free(CUdeviceptr address) const { Check(driver_.cuMemFree(address), "cuMemFree"); }

void CudaDevice::CopyToDevice(std::span<const std::byte> from, CUdeviceptr to) const {
  if (!from.empty()) {
    Check(driver_.cuMemcpyHtoDAsync(to, from.data(), from.size(), stream_), "cuMemcpyHtoDAsync");
  }
}

void CudaDevice::CopyToHost(CUdeviceptr from, std::span<std::byte> to) const {
  if (!to.empty()) {
    Check(driver_.cuMemcpyDtoHAsync(to.data(), from, to.size(), stream_), "cuMemcpyDtoHAsync");
  }
}

void CudaDevice::Launch(const char* kernel, std::size_t thread_count, void* job) const {
  if (thread_count == 0) {
    return;
  }
  const auto blocks = static_cast<unsigned>((thread_count + kBlockThreads - 1) / kBlockThreads);
  std::array<void*, 1> parameters = {job};  // copied by the call
  Check(driver_.cuLaunchKernel(kernels_.at(kernel), blocks, 1, 1, kBlockThreads, 1, 1, 0, stream_,
                               parameters.data(), nullptr),
        kernel);
}

void CudaDevice::Synchronize() const {
  Check(driver_.cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

}  // namespace char_lm
