// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_DEVICE_H_
#define SEALPOINT_LIB_DEVICE_CUDA_DEVICE_H_

#include <unistd.h>

#include <cstdint>
#include <mutex>
#include <optional>

#include "lib/base/errors.h"
#include "lib/device/cuda_driver.h"

namespace sealpoint::internal::device {

// The functions of kernels.cu, loaded into a context.
struct CudaKernels {
  cuda::Function* sum_blocks = nullptr;
  cuda::Function* fold_chunks = nullptr;
  cuda::Function* finish_chunks = nullptr;
  cuda::Function* store_factors = nullptr;
  cuda::Function* sum_tiles = nullptr;
  cuda::Function* fold_sums = nullptr;
};

// A device with a retained primary context. It stays retained until the process ends, because
// releasing it then would race with the driver's shutdown.
struct CudaDevice {
  const cuda::Driver& driver;
  const int number;
  cuda::Context* const context;
  const std::int64_t pitch_max_bytes;  // of 2D copies
  const pid_t owner = getpid();

  std::mutex mutex{};
  // Guarded: the kernels or the reason for their absence, once requested.
  std::optional<Result<CudaKernels>> kernels{};
  // Guarded: of fingerprints, once loaded.
  cuda::Address coefficients = 0;

  // In a forked child the driver is in an unknown state and must not be called.
  Status CheckProcess() const {
    if (getpid() == owner) return {};
    return MakeError(Code::kDevice, "CUDA device ", number,
                     " was used before fork and cannot be used after it");
  }
  Status Check(int result, std::string_view call) const {
    if (result == cuda::kSuccess) return {};
    return cuda::ToStatus(driver, result, StrCat(call, " on CUDA device ", number));
  }
};

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_CUDA_DEVICE_H_
