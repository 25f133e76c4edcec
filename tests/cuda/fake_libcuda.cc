// SPDX-License-Identifier: Apache-2.0
// The fake driver as a shared library of the driver's name, so that everything from finding the
// library to the last test for a real device runs without one. It has one device.
#include "tests/support/device/fake_cuda_driver.h"

namespace {

// NOLINTNEXTLINE(google-build-using-namespace): the signatures are those of the table
using namespace sealpoint::internal::cuda;

const Driver& Table() {
  static const sealpoint::testing::FakeCudaDriver fake;
  return fake.table();
}

}  // namespace

#define SEALPOINT_EXPORTED extern "C" __attribute__((visibility("default")))

SEALPOINT_EXPORTED int cuInit(unsigned flags) { return Table().init(flags); }
SEALPOINT_EXPORTED int cuGetErrorName(int error, const char** name) {
  return Table().get_error_name(error, name);
}
SEALPOINT_EXPORTED int cuDeviceGetCount(int* count) { return Table().device_get_count(count); }
SEALPOINT_EXPORTED int cuDeviceGet(int* device, int ordinal) {
  return Table().device_get(device, ordinal);
}
SEALPOINT_EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return Table().device_get_attribute(value, attribute, device);
}
SEALPOINT_EXPORTED int cuDevicePrimaryCtxRetain(Context** context, int device) {
  return Table().primary_context_retain(context, device);
}
SEALPOINT_EXPORTED int cuCtxPushCurrent_v2(Context* context) {
  return Table().context_push(context);
}
SEALPOINT_EXPORTED int cuCtxPopCurrent_v2(Context** context) {
  return Table().context_pop(context);
}
SEALPOINT_EXPORTED int cuThreadExchangeStreamCaptureMode(int* mode) {
  return Table().exchange_capture_mode(mode);
}
SEALPOINT_EXPORTED int cuStreamCreate(Stream** stream, unsigned flags) {
  return Table().stream_create(stream, flags);
}
SEALPOINT_EXPORTED int cuStreamDestroy_v2(Stream* stream) { return Table().stream_destroy(stream); }
SEALPOINT_EXPORTED int cuStreamSynchronize(Stream* stream) {
  return Table().stream_synchronize(stream);
}
SEALPOINT_EXPORTED int cuStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
  return Table().stream_wait_event(stream, event, flags);
}
SEALPOINT_EXPORTED int cuStreamIsCapturing(Stream* stream, int* status) {
  return Table().stream_is_capturing(stream, status);
}
SEALPOINT_EXPORTED int cuEventCreate(Event** event, unsigned flags) {
  return Table().event_create(event, flags);
}
SEALPOINT_EXPORTED int cuEventDestroy_v2(Event* event) { return Table().event_destroy(event); }
SEALPOINT_EXPORTED int cuEventRecord(Event* event, Stream* stream) {
  return Table().event_record(event, stream);
}
SEALPOINT_EXPORTED int cuEventQuery(Event* event) { return Table().event_query(event); }
SEALPOINT_EXPORTED int cuEventSynchronize(Event* event) { return Table().event_synchronize(event); }
SEALPOINT_EXPORTED int cuMemcpyDtoHAsync_v2(void* to, Address from, std::size_t size,
                                            Stream* stream) {
  return Table().copy_to_host(to, from, size, stream);
}
SEALPOINT_EXPORTED int cuMemcpyHtoDAsync_v2(Address to, const void* from, std::size_t size,
                                            Stream* stream) {
  return Table().copy_to_device(to, from, size, stream);
}
SEALPOINT_EXPORTED int cuMemcpy2DAsync_v2(const Copy2D* copy, Stream* stream) {
  return Table().copy_2d(copy, stream);
}
SEALPOINT_EXPORTED int cuMemHostRegister_v2(void* host, std::size_t size, unsigned flags) {
  return Table().host_register(host, size, flags);
}
SEALPOINT_EXPORTED int cuMemHostUnregister(void* host) { return Table().host_unregister(host); }
SEALPOINT_EXPORTED int cuMemAlloc_v2(Address* address, std::size_t size) {
  return Table().memory_allocate(address, size);
}
SEALPOINT_EXPORTED int cuMemFree_v2(Address address) { return Table().memory_free(address); }
SEALPOINT_EXPORTED int cuModuleLoadData(Module** module, const void* image) {
  return Table().module_load_data(module, image);
}
SEALPOINT_EXPORTED int cuModuleGetFunction(Function** function, Module* module, const char* name) {
  return Table().module_get_function(function, module, name);
}
SEALPOINT_EXPORTED int cuLaunchKernel(Function* function, unsigned grid_x, unsigned grid_y,
                                      unsigned grid_z, unsigned block_x, unsigned block_y,
                                      unsigned block_z, unsigned shared_bytes, Stream* stream,
                                      void** parameters, void** extra) {
  return Table().launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                               shared_bytes, stream, parameters, extra);
}
