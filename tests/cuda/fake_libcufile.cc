// SPDX-License-Identifier: Apache-2.0
// cuFile as a shared library of its name, over the fake driver. As the real one it takes
// descriptors with O_DIRECT only, and reads at any alignment; as its compatibility mode it copies
// what it reads to the device of the context that is current.
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lib/device/cuda_driver.h"
#include "lib/device/cufile_driver.h"

namespace {

namespace cuda = sealpoint::internal::cuda;
using sealpoint::internal::cufile::Descriptor;
using sealpoint::internal::cufile::Outcome;

constexpr int kDriverNotInitialized = 5001;
constexpr int kDirectIoNotSet = 5020;
constexpr int kInvalidValue = 5022;

bool g_is_open = false;

}  // namespace

#define SEALPOINT_EXPORTED extern "C" __attribute__((visibility("default")))

// Functions of the fake driver.
extern "C" int cuStreamCreate(cuda::Stream** stream, unsigned flags);
extern "C" int cuStreamDestroy_v2(cuda::Stream* stream);
extern "C" int cuStreamSynchronize(cuda::Stream* stream);
extern "C" int cuMemcpyHtoDAsync_v2(cuda::Address to, const void* from, std::size_t size,
                                    cuda::Stream* stream);

SEALPOINT_EXPORTED Outcome cuFileDriverOpen() {
  g_is_open = true;
  return {0, 0};
}
SEALPOINT_EXPORTED Outcome cuFileHandleRegister(void** handle, Descriptor* descriptor) {
  if (!g_is_open) return {kDriverNotInitialized, 0};
  const int flags = fcntl(descriptor->descriptor, F_GETFL);
  if (descriptor->type != 1 || flags < 0) return {kInvalidValue, 0};
  if ((flags & O_DIRECT) == 0) return {kDirectIoNotSet, 0};
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor->descriptor);
  *handle = std::make_unique<int>(open(path.c_str(), O_RDONLY | O_CLOEXEC)).release();
  return {0, 0};
}
SEALPOINT_EXPORTED void cuFileHandleDeregister(void* handle) {
  const std::unique_ptr<int> descriptor(static_cast<int*>(handle));
  close(*descriptor);
}
SEALPOINT_EXPORTED ssize_t cuFileRead(void* handle, void* base, std::size_t size, off_t file_offset,
                                      off_t base_offset) {
  std::vector<char> bytes(size);
  const ssize_t got = pread(*static_cast<int*>(handle), bytes.data(), size, file_offset);
  if (got <= 0) return got;
  const auto to = reinterpret_cast<std::uintptr_t>(base) + static_cast<std::uintptr_t>(base_offset);
  cuda::Stream* stream = nullptr;
  const bool is_copied =
      cuStreamCreate(&stream, cuda::kStreamNonBlocking) == 0 &&
      cuMemcpyHtoDAsync_v2(to, bytes.data(), static_cast<std::size_t>(got), stream) == 0 &&
      cuStreamSynchronize(stream) == 0 && cuStreamDestroy_v2(stream) == 0;
  return is_copied ? got : -sealpoint::internal::cufile::kCudaDriverError;
}
