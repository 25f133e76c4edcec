// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DEVICE_FAKE_CUDA_DRIVER_H_
#define SEALPOINT_TESTS_SUPPORT_DEVICE_FAKE_CUDA_DRIVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "lib/device/cuda_driver.h"

namespace sealpoint::testing {

// Results of the driver API that tests provoke.
inline constexpr int kCudaInvalidValue = 1;
inline constexpr int kCudaOutOfMemory = 2;
inline constexpr int kCudaStubLibrary = 34;
inline constexpr int kCudaInsufficientDriver = 35;
inline constexpr int kCudaNoDevice = 100;
inline constexpr int kCudaInvalidContext = 201;
inline constexpr int kCudaInvalidHandle = 400;
inline constexpr int kCudaNotFound = 500;
inline constexpr int kCudaIllegalAddress = 700;

// A kernel on the host: takes its parameters when it is launched, and returns what the stream does
// later. Whatever module is loaded has the kernels of lib/device, and those that were added.
using FakeKernel = std::function<void()> (*)(void** parameters, std::uint64_t thread_count);
bool AddFakeKernel(const std::string& name, FakeKernel kernel);  // true, to initialise something

// A CUDA driver over host memory, as strict as the real one: a call without its context current, or
// with an object of another context, fails. Work that is queued on a stream runs when somebody
// synchronises with it, or step by step with each query, so that nothing is done earlier than
// necessary. Memory that it allocated can be accessed through it only. At most one at a time in a
// process, because a table of plain functions has no object. Thread safety: all functions.
class FakeCudaDriver {
 public:
  explicit FakeCudaDriver(int device_count = 1);
  ~FakeCudaDriver();
  FakeCudaDriver(const FakeCudaDriver&) = delete;
  FakeCudaDriver& operator=(const FakeCudaDriver&) = delete;

  const internal::cuda::Driver& table() const { return table_; }

  // The `nth` call from now of this function (named as the member of Driver), and all that follow,
  // return `result`; nth 0: none.
  void Fail(const std::string& function, int result, std::uint64_t nth = 1);
  void SetCapturing(void* stream, bool capturing);
  // Leaves a stream of the device's primary context to a test.
  void* MakeStream(int device);
  // Queues a write of `value` to `to` on a stream; null is the default stream of the device.
  void QueueWrite(int device, void* stream, unsigned char* to, unsigned char value);
  // What a user's thread has current.
  void* MakeForeignContext();
  void PushForeign(void* context);
  void* PopForeign();
  void* CurrentOfThisThread() const;
  std::uint64_t OpenContexts() const;  // pushed and not popped, of all threads

  std::uint64_t Calls(const std::string& function) const;
  std::uint64_t LiveStreams() const;
  std::uint64_t LiveEvents() const;
  std::uint64_t RegisteredBytes() const;
  std::uint64_t AllocatedBytes() const;
  int CaptureModeOfThisThread() const;

 private:
  internal::cuda::Driver table_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DEVICE_FAKE_CUDA_DRIVER_H_
