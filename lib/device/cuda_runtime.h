// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_RUNTIME_H_
#define SEALPOINT_LIB_DEVICE_CUDA_RUNTIME_H_

#include <functional>
#include <memory>

#include "lib/device/cuda_driver.h"
#include "lib/device/cufile_driver.h"
#include "lib/device/device_runtime.h"

namespace sealpoint::internal::device {

// The CUDA devices of this process; one runtime for all engines, which lives until the process
// ends. Loads no driver before its first use.
std::shared_ptr<DeviceRuntime> CudaRuntime();

// A runtime over the drivers that these give, each called once, when first needed.
std::shared_ptr<DeviceRuntime> MakeCudaRuntime(
    std::function<Result<cuda::Driver>()> load,
    std::function<Result<cufile::Driver>()> load_cufile = [] { return cufile::LoadDriver(); });

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_CUDA_RUNTIME_H_
