// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_FILE_H_
#define SEALPOINT_LIB_DEVICE_CUDA_FILE_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "lib/device/cuda_device.h"
#include "lib/device/cufile_driver.h"
#include "lib/device/device_runtime.h"

namespace sealpoint::internal {

// A file that is registered with cuFile. No memory is: cuFile then reads what is not aligned, or
// not pinned, through buffers of its own in device memory.
class CudaFile final : public DeviceFile {
 public:
  using OpenDevice = std::function<Result<CudaDevice*>(int number)>;
  // Registers the descriptor, with the context of `any_device` current. `open_device` must outlive
  // the file, with the devices that it gives.
  static Result<std::unique_ptr<DeviceFile>> Create(const cufile::Driver& driver,
                                                    const CudaDevice& any_device,
                                                    OpenDevice open_device, int descriptor);
  ~CudaFile() override;

  Status Read(std::uint64_t offset, int device, std::byte* to, std::uint64_t size_bytes) override;

 private:
  CudaFile(const cufile::Driver& driver, OpenDevice open_device)
      : driver_(driver), open_device_(std::move(open_device)) {}

  const cufile::Driver driver_;
  const OpenDevice open_device_;
  const pid_t owner_ = getpid();
  void* handle_ = nullptr;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_DEVICE_CUDA_FILE_H_
