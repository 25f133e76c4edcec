// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_RUNTIME_H_
#define SEALPOINT_LIB_DEVICE_CUDA_RUNTIME_H_

#include <memory>

#include "lib/device/device_runtime.h"

namespace sealpoint::internal {

// The CUDA devices of this process; one runtime for all engines, which lives until the process
// ends. Loads no driver before its first use.
std::shared_ptr<DeviceRuntime> CudaRuntime();

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_DEVICE_CUDA_RUNTIME_H_
