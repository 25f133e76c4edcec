// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_DRIVER_H_
#define SEALPOINT_LIB_DEVICE_CUDA_DRIVER_H_

#include <cstddef>
#include <string>

#include "sealpoint/status.h"

// The part of the CUDA driver API that is used here, declared by ourselves: no toolkit is needed to
// build, and the driver is looked for at run time. tests/cuda compares each declaration with the
// toolkit's cuda.h if there is one. Names are CUDA's without the prefix; enumerations are int.
namespace sealpoint::internal::cuda {

using Address = unsigned long long;  // CUdeviceptr

struct Context;
struct Event;
struct Function;
struct Module;
struct Stream;

struct Copy2D {  // CUDA_MEMCPY2D
  std::size_t source_x_bytes = 0;
  std::size_t source_y = 0;
  int source_type = 0;
  const void* source_host = nullptr;
  Address source_device = 0;
  void* source_array = nullptr;
  std::size_t source_pitch = 0;
  std::size_t target_x_bytes = 0;
  std::size_t target_y = 0;
  int target_type = 0;
  void* target_host = nullptr;
  Address target_device = 0;
  void* target_array = nullptr;
  std::size_t target_pitch = 0;
  std::size_t width_bytes = 0;
  std::size_t height = 0;
};

inline constexpr int kSuccess = 0;
inline constexpr int kNotReady = 600;

inline constexpr int kMemoryTypeHost = 1;
inline constexpr int kMemoryTypeDevice = 2;
inline constexpr int kAttributeMaxPitch = 11;
inline constexpr int kCaptureStatusNone = 0;
inline constexpr int kCaptureModeRelaxed = 2;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kHostRegisterPortable = 1;

// The functions; each returns CUresult.
struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*get_error_name)(int error, const char** name) = nullptr;
  int (*device_get_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_get_attribute)(int* value, int attribute, int device) = nullptr;
  int (*primary_context_retain)(Context** context, int device) = nullptr;
  int (*context_push)(Context* context) = nullptr;
  int (*context_pop)(Context** context) = nullptr;
  int (*exchange_capture_mode)(int* mode) = nullptr;
  int (*stream_create)(Stream** stream, unsigned flags) = nullptr;
  int (*stream_destroy)(Stream* stream) = nullptr;
  int (*stream_synchronize)(Stream* stream) = nullptr;
  int (*stream_wait_event)(Stream* stream, Event* event, unsigned flags) = nullptr;
  int (*stream_is_capturing)(Stream* stream, int* status) = nullptr;
  int (*event_create)(Event** event, unsigned flags) = nullptr;
  int (*event_destroy)(Event* event) = nullptr;
  int (*event_record)(Event* event, Stream* stream) = nullptr;
  int (*event_query)(Event* event) = nullptr;
  int (*event_synchronize)(Event* event) = nullptr;
  int (*copy_to_host)(void* to, Address from, std::size_t size, Stream* stream) = nullptr;
  int (*copy_to_device)(Address to, const void* from, std::size_t size, Stream* stream) = nullptr;
  int (*copy_2d)(const Copy2D* copy, Stream* stream) = nullptr;
  int (*host_register)(void* host, std::size_t size, unsigned flags) = nullptr;
  int (*host_unregister)(void* host) = nullptr;
  int (*memory_allocate)(Address* address, std::size_t size) = nullptr;
  int (*memory_free)(Address address) = nullptr;
  int (*module_load_data)(Module** module, const void* image) = nullptr;
  int (*module_get_function)(Function** function, Module* module, const char* name) = nullptr;
  int (*launch_kernel)(Function* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       Stream* stream, void** parameters, void** extra) = nullptr;
};

// X(member of Driver, exported symbol)
#define SEALPOINT_CUDA_FUNCTIONS(X)                           \
  X(init, cuInit)                                             \
  X(get_error_name, cuGetErrorName)                           \
  X(device_get_count, cuDeviceGetCount)                       \
  X(device_get, cuDeviceGet)                                  \
  X(device_get_attribute, cuDeviceGetAttribute)               \
  X(primary_context_retain, cuDevicePrimaryCtxRetain)         \
  X(context_push, cuCtxPushCurrent_v2)                        \
  X(context_pop, cuCtxPopCurrent_v2)                          \
  X(exchange_capture_mode, cuThreadExchangeStreamCaptureMode) \
  X(stream_create, cuStreamCreate)                            \
  X(stream_destroy, cuStreamDestroy_v2)                       \
  X(stream_synchronize, cuStreamSynchronize)                  \
  X(stream_wait_event, cuStreamWaitEvent)                     \
  X(stream_is_capturing, cuStreamIsCapturing)                 \
  X(event_create, cuEventCreate)                              \
  X(event_destroy, cuEventDestroy_v2)                         \
  X(event_record, cuEventRecord)                              \
  X(event_query, cuEventQuery)                                \
  X(event_synchronize, cuEventSynchronize)                    \
  X(copy_to_host, cuMemcpyDtoHAsync_v2)                       \
  X(copy_to_device, cuMemcpyHtoDAsync_v2)                     \
  X(copy_2d, cuMemcpy2DAsync_v2)                              \
  X(host_register, cuMemHostRegister_v2)                      \
  X(host_unregister, cuMemHostUnregister)                     \
  X(memory_allocate, cuMemAlloc_v2)                           \
  X(memory_free, cuMemFree_v2)                                \
  X(module_load_data, cuModuleLoadData)                       \
  X(module_get_function, cuModuleGetFunction)                 \
  X(launch_kernel, cuLaunchKernel)

// Opens the library permanently and finds all functions; initialises nothing. Errors: Device (no
// such library, a function is missing).
Result<Driver> LoadDriver(const std::string& library_name);

// Success for kSuccess, else Device: "<call>: CUDA_ERROR_… (<number>)".
Status ToStatus(const Driver& driver, int result, std::string_view call);

// Makes a context current on this thread for as long as it lives, and leaves the thread as it was:
// the caller's context may be any, or none. The thread may be capturing a stream into a graph, or
// another may: calls that are forbidden meanwhile are allowed within, since they concern streams
// and events of our own.
class CurrentContext {
 public:
  CurrentContext(const Driver& driver, Context* context);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  const Status& status() const { return status_; }

 private:
  const Driver& driver_;
  Status status_;
  int capture_mode_ = kCaptureModeRelaxed;
};

}  // namespace sealpoint::internal::cuda

#endif  // SEALPOINT_LIB_DEVICE_CUDA_DRIVER_H_
