// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cuda_kernels.h"

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/kernel_image.h"

namespace sealpoint::internal::device {
namespace {

Result<CudaKernels> Load(const CudaDevice& device) {
  const ByteSpan image = KernelImage();
  if (image.empty()) {
    return MakeError(Code::kDevice, "this build has no kernels for devices");
  }
  const cuda::CurrentContext current(device.driver, device.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  cuda::Module* module = nullptr;  // stays loaded, as the context stays retained
  SEALPOINT_RETURN_IF_ERROR(
      device.Check(device.driver.module_load_data(&module, image.data()), "cuModuleLoadData"));
  CudaKernels kernels;
  const auto find = [&](cuda::Function** function, const char* name) {
    return device.Check(device.driver.module_get_function(function, module, name),
                        StrCat("cuModuleGetFunction of ", name));
  };
  SEALPOINT_RETURN_IF_ERROR(find(&kernels.sum_blocks, "sealpoint_sum_blocks"));
  SEALPOINT_RETURN_IF_ERROR(find(&kernels.fold_chunks, "sealpoint_fold_chunks"));
  SEALPOINT_RETURN_IF_ERROR(find(&kernels.finish_chunks, "sealpoint_finish_chunks"));
  SEALPOINT_RETURN_IF_ERROR(find(&kernels.store_factors, "sealpoint_store_factors"));
  SEALPOINT_RETURN_IF_ERROR(find(&kernels.sum_tiles, "sealpoint_sum_tiles"));
  SEALPOINT_RETURN_IF_ERROR(find(&kernels.fold_sums, "sealpoint_fold_sums"));
  return kernels;
}

}  // namespace

Result<CudaKernels> LoadKernels(CudaDevice& device) {
  SEALPOINT_RETURN_IF_ERROR(device.CheckProcess());
  const std::lock_guard lock(device.mutex);
  if (!device.kernels) device.kernels = Load(device);
  return *device.kernels;
}

}  // namespace sealpoint::internal::device
