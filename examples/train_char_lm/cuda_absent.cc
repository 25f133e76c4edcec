// SPDX-License-Identifier: Apache-2.0
// In place of cuda_compute.cc and cuda_device.cc in a build without the CUDA Toolkit.
#include "cuda_compute.h"

namespace char_lm {

bool HasCuda() { return false; }

sealpoint::Result<MakeCompute> OnCuda(std::size_t /*rank*/) {
  return sealpoint::Status(sealpoint::Code::kUnsupported, "this build is without CUDA");
}

}  // namespace char_lm
