// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cuda_file.h"

#include <cerrno>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// The error of a read that returned no byte. That of the file itself is reported; all others (a
// driver, device, memory or file system that cannot do it) are Unsupported: the host must read.
Status ReadError(ssize_t result, int error_number) {
  if (result == 0) return MakeError(Code::kIncomplete, "cuFileRead: the file ends here");
  if (result == -cufile::kIoError) {
    return MakeError(Code::kIo, "cuFileRead: cuFile error ", cufile::kIoError);
  }
  if (result != -1)
    return cufile::ToStatus({.error = static_cast<int>(-result), .cuda_error = 0}, "cuFileRead");
  const bool is_refused =
      error_number == EINVAL || error_number == EOPNOTSUPP || error_number == ENOSYS;
  if (!is_refused) return ErrnoError("cuFileRead", error_number);
  return MakeError(Code::kUnsupported, "cuFileRead: errno ", error_number);
}

}  // namespace

Result<std::unique_ptr<DeviceFile>> CudaFile::Create(const cufile::Driver& driver,
                                                     const CudaDevice& any_device,
                                                     OpenDevice open_device, int descriptor) {
  const cuda::CurrentContext current(any_device.driver, any_device.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  std::unique_ptr<CudaFile> file(new CudaFile(driver, std::move(open_device)));
  cufile::Descriptor described{.descriptor = descriptor};
  void* handle = nullptr;
  SEALPOINT_RETURN_IF_ERROR(
      cufile::ToStatus(driver.register_handle(&handle, &described), "cuFileHandleRegister"));
  file->handle_ = handle;
  return std::unique_ptr<DeviceFile>(std::move(file));
}

CudaFile::~CudaFile() {
  // In a forked child cuFile is in an unknown state, and its threads are gone.
  if (handle_ != nullptr && getpid() == owner_) driver_.deregister_handle(handle_);
}

Status CudaFile::Read(std::uint64_t offset, int device, std::byte* to, std::uint64_t size_bytes) {
  SEALPOINT_ASSIGN_OR_RETURN(const CudaDevice* const opened, open_device_(device));
  const cuda::CurrentContext current(opened->driver, opened->context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  for (std::uint64_t done = 0; done < size_bytes;) {
    const ssize_t got = driver_.read(handle_, to, size_bytes - done,
                                     static_cast<off_t>(offset + done), static_cast<off_t>(done));
    const int error_number = errno;
    if (got == -1 && error_number == EINTR) continue;
    if (got <= 0) return ReadError(got, error_number).AtOffset(offset + done);
    done += static_cast<std::uint64_t>(got);
  }
  return {};
}

}  // namespace sealpoint::internal
