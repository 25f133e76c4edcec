// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUFILE_DRIVER_H_
#define SEALPOINT_LIB_DEVICE_CUFILE_DRIVER_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "sealpoint/status.h"

// The used part of the cuFile API (GPUDirect Storage), declared here like the CUDA driver API.
// Layouts, numbers and meanings are those of NVIDIA's cufile.h as of cuFile 1.15 (CUDA 13.0) and of
// the "cuFile API Reference Guide" (docs.nvidia.com/gpudirect-storage); tests/cuda compares them
// with that header if it is installed.
namespace sealpoint::internal::cufile {

struct Outcome {  // CUfileError_t; as plain as C's, since functions with its linkage return it
  int error;
  int cuda_error;  // a CUresult, with kCudaDriverError
};

inline constexpr int kCudaDriverError = 5011;
inline constexpr int kDriverAlreadyOpen = 5026;
inline constexpr int kIoError = 5044;
inline constexpr int kTypeDescriptor = 1;  // CU_FILE_HANDLE_TYPE_OPAQUE_FD

struct Descriptor {  // CUfileDescr_t
  int type = kTypeDescriptor;
  alignas(void*) int descriptor = -1;  // a union with a pointer
  const void* operations = nullptr;
};
static_assert(sizeof(Descriptor) == 24 && offsetof(Descriptor, descriptor) == 8 &&
              offsetof(Descriptor, operations) == 16);

struct Driver {
  Outcome (*open)() = nullptr;
  Outcome (*register_handle)(void** handle, Descriptor* descriptor) = nullptr;
  void (*deregister_handle)(void* handle) = nullptr;
  // Bytes read, or -1 with errno, or an error with its sign changed.
  ssize_t (*read)(void* handle, void* base, std::size_t size, off_t file_offset,
                  off_t base_offset) = nullptr;
};

// X(member of Driver, exported symbol). cuFileDriverClose is not among them: the driver stays open
// until the process ends, as contexts stay retained.
#define SEALPOINT_CUFILE_FUNCTIONS(X)          \
  X(open, cuFileDriverOpen)                    \
  X(register_handle, cuFileHandleRegister)     \
  X(deregister_handle, cuFileHandleDeregister) \
  X(read, cuFileRead)

// Opens the first existing library of these names permanently and finds all functions; initialises
// nothing. Errors: Unsupported (no such library, a function is missing).
Result<Driver> LoadDriver(const std::vector<std::string>& library_names = {"libcufile.so.0",
                                                                           "libcufile.so"});

// Success if there is no error, else Unsupported: "<call>: cuFile error <number>".
Status ToStatus(const Outcome& outcome, std::string_view call);

}  // namespace sealpoint::internal::cufile

#endif  // SEALPOINT_LIB_DEVICE_CUFILE_DRIVER_H_
