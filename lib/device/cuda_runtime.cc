// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cuda_runtime.h"

#include "lib/base/errors.h"

namespace sealpoint::internal {
namespace {

// The answers where there is no driver.
class NoCudaRuntime final : public DeviceRuntime {
 public:
  Status CheckAvailable(int device) override {
    return MakeError(Code::kDevice, "CUDA device ", device, " is not available: no driver");
  }
  Status CheckDigests(int device) override { return CheckAvailable(device); }
  Result<std::unique_ptr<CopyQueue>> MakeQueue(int device) override {
    return CheckAvailable(device);
  }
  Status Pin(MutableByteSpan /*host*/) override { return CheckAvailable(0); }
  void Unpin(MutableByteSpan /*host*/) override {}
};

}  // namespace

std::shared_ptr<DeviceRuntime> CudaRuntime() {
  static const auto runtime = std::make_shared<NoCudaRuntime>();
  return runtime;
}

}  // namespace sealpoint::internal
