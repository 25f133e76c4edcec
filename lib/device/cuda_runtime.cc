// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cuda_runtime.h"

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/cuda_device.h"
#include "lib/device/cuda_kernels.h"
#include "lib/device/cuda_queue.h"
#include "lib/device/cufile_driver.h"
#include "lib/device/device_runtime.h"

namespace sealpoint::internal::device {
namespace {

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

class CudaDevices final : public DeviceRuntime {
 public:
  CudaDevices(std::function<Result<cuda::Driver>()> load,
              std::function<Result<cufile::Driver>()> load_cufile)
      : load_(std::move(load)), load_cufile_(std::move(load_cufile)) {}

  Status CheckAvailable(int device) override { return Open(device).status(); }
  Status CheckKernels(int device) override {
    SEALPOINT_ASSIGN_OR_RETURN(CudaDevice* const opened, Open(device));
    return LoadKernels(*opened).status();
  }
  Result<std::unique_ptr<CopyQueue>> MakeQueue(int device) override {
    SEALPOINT_ASSIGN_OR_RETURN(CudaDevice* const opened, Open(device));
    return CudaQueue::Create(*opened);
  }
  Status Pin(MutableByteSpan host) override;
  void Unpin(MutableByteSpan host) override;
  Status CheckFiles() override { return Cufile().status(); }
  Result<std::unique_ptr<DeviceFile>> OpenFile(int descriptor) override;

 private:
  Status Initialise();
  Result<CudaDevice*> Open(int device);
  Result<std::unique_ptr<CudaDevice>> Retain(int number) const;
  CudaDevice* AnyOpen();
  Result<cufile::Driver> Cufile();
  Result<cufile::Driver> OpenCufile(const CudaDevice& device) const;
  // In a forked child the mutex may be held for ever, and the driver is not usable.
  bool InForkedChild() const {
    const pid_t owner = owner_;
    return owner != 0 && owner != getpid();
  }

  std::function<Result<cuda::Driver>()> load_;
  std::function<Result<cufile::Driver>()> load_cufile_;
  std::atomic<pid_t> owner_ = 0;  // the process that asked for the driver; 0 before

  std::mutex mutex_;
  // Guarded: how the initialisation went, once it was tried.
  std::optional<Status> initialised_;
  cuda::Driver driver_;
  int device_count_ = 0;
  std::map<int, std::unique_ptr<CudaDevice>> devices_;
  // What cuFile offers, once it was asked.
  std::optional<Result<cufile::Driver>> cufile_;
};

// Precondition: mutex_ is held.
Status CudaDevices::Initialise() {
  SEALPOINT_ASSIGN_OR_RETURN(driver_, load_());
  SEALPOINT_RETURN_IF_ERROR(cuda::ToStatus(driver_, driver_.init(0), "cuInit"));
  return cuda::ToStatus(driver_, driver_.device_get_count(&device_count_), "cuDeviceGetCount");
}

Result<std::unique_ptr<CudaDevice>> CudaDevices::Retain(int number) const {
  int handle = 0;
  cuda::Context* context = nullptr;
  int pitch_max = 0;
  SEALPOINT_RETURN_IF_ERROR(
      cuda::ToStatus(driver_, driver_.device_get(&handle, number), "cuDeviceGet"));
  SEALPOINT_RETURN_IF_ERROR(cuda::ToStatus(
      driver_, driver_.device_get_attribute(&pitch_max, cuda::kAttributeMaxPitch, handle),
      "cuDeviceGetAttribute"));
  SEALPOINT_RETURN_IF_ERROR(cuda::ToStatus(
      driver_, driver_.primary_context_retain(&context, handle), "cuDevicePrimaryCtxRetain"));
  return std::unique_ptr<CudaDevice>(new CudaDevice{driver_, number, context, pitch_max});
}

Result<CudaDevice*> CudaDevices::Open(int device) {
  if (InForkedChild()) {
    return MakeError(Code::kDevice, "CUDA was used before fork and cannot be used after it");
  }
  const std::lock_guard lock(mutex_);
  owner_ = getpid();
  if (!initialised_) initialised_ = Initialise();
  if (!initialised_->ok()) {
    return Status(*initialised_).Prefixed(StrCat("CUDA device ", device, " is not available"));
  }
  if (device < 0 || device >= device_count_) {
    return MakeError(Code::kDevice, "CUDA device ", device, " is not available: there are ",
                     device_count_);
  }
  std::unique_ptr<CudaDevice>& opened = devices_[device];
  if (opened == nullptr) {
    auto retained = Retain(device);
    if (!retained) {
      return std::move(retained).error().Prefixed(
          StrCat("CUDA device ", device, " is not available"));
    }
    opened = std::move(retained).value();
  }
  return opened.get();
}

CudaDevice* CudaDevices::AnyOpen() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, device] : devices_) {
    if (device != nullptr) return device.get();
  }
  return nullptr;
}

Status CudaDevices::Pin(MutableByteSpan host) {
  if (InForkedChild()) return MakeError(Code::kDevice, "CUDA cannot be used after fork");
  CudaDevice* const device = AnyOpen();
  if (device == nullptr) return MakeError(Code::kDevice, "no CUDA device was used yet");
  const cuda::CurrentContext current(device->driver, device->context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  return device->Check(
      device->driver.host_register(host.data(), host.size(), cuda::kHostRegisterPortable),
      "cuMemHostRegister");
}

void CudaDevices::Unpin(MutableByteSpan host) {
  if (InForkedChild()) return;
  CudaDevice* const device = AnyOpen();
  SEALPOINT_CHECK(device != nullptr);
  // An error means that the context is lost or gone, and the registration with it.
  const cuda::CurrentContext current(device->driver, device->context);
  if (current.status().ok()) device->driver.host_unregister(host.data());
}

// Never closed again, as the contexts are never released.
Result<cufile::Driver> CudaDevices::OpenCufile(const CudaDevice& device) const {
  SEALPOINT_ASSIGN_OR_RETURN(const cufile::Driver driver, load_cufile_());
  const cuda::CurrentContext current(device.driver, device.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  const cufile::Outcome opened = driver.open();
  // The program may use cuFile, too.
  if (opened.error == cufile::kDriverAlreadyOpen) return driver;
  SEALPOINT_RETURN_IF_ERROR(cufile::ToStatus(opened, "cuFileDriverOpen"));
  return driver;
}

Result<cufile::Driver> CudaDevices::Cufile() {
  if (InForkedChild()) return MakeError(Code::kDevice, "cuFile cannot be used after fork");
  const CudaDevice* const device = AnyOpen();
  if (device == nullptr) return MakeError(Code::kDevice, "no CUDA device was used yet");
  const std::lock_guard lock(mutex_);
  if (!cufile_) cufile_ = OpenCufile(*device);
  return *cufile_;
}

Result<std::unique_ptr<DeviceFile>> CudaDevices::OpenFile(int descriptor) {
  SEALPOINT_ASSIGN_OR_RETURN(const cufile::Driver driver, Cufile());
  return CudaFile::Create(
      driver, *AnyOpen(), [this](int number) { return Open(number); }, descriptor);
}

}  // namespace

std::shared_ptr<DeviceRuntime> MakeCudaRuntime(
    std::function<Result<cuda::Driver>()> load,
    std::function<Result<cufile::Driver>()> load_cufile) {
  return std::make_shared<CudaDevices>(std::move(load), std::move(load_cufile));
}

std::shared_ptr<DeviceRuntime> CudaRuntime() {
  // Never destroyed: threads of other static objects may still use it, and the driver may be gone.
  static const auto& runtime = *new std::shared_ptr<DeviceRuntime>(
      MakeCudaRuntime([] { return cuda::LoadDriver("libcuda.so.1"); }));
  return runtime;
}

}  // namespace sealpoint::internal::device
