// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_TESTS_SUPPORT_DEVICE_HOST_DEVICE_H_
#define SEALPOINT_TESTS_SUPPORT_DEVICE_HOST_DEVICE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "lib/device/device_runtime.h"
#include "tests/support/device/device_memory.h"
#include "tests/support/device/host_device_files.h"
#include "tests/support/device/serial_worker.h"

namespace sealpoint::testing {

struct HostDeviceOptions {
  int device_count = 2;
  // Seeds the delays and the order in which the parts of a copy arrive.
  std::uint64_t seed = 1;
  // The longest delay before an operation and between the parts of a copy; uniform from 0 on.
  std::chrono::microseconds delay_max{300};
  std::uint64_t piece_bytes_max = 64 * kKiB;
  // The rate of the link of each device, which its queues share; 0: as fast as memory.
  double link_bytes_per_second = 0;
  bool has_kernels = true;
  bool has_memory_for_kernels = true;
  bool reads_files = false;
};

struct HostDeviceCounters {
  std::uint64_t queues = 0;  // made so far
  std::uint64_t copies = 0;  // queued so far
  std::uint64_t marks = 0;   // tickets asked for
  // Counts of copies that have run.
  std::uint64_t bytes_to_host = 0;
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_pageable = 0;  // from or to host memory that was not pinned
  std::uint64_t digests = 0;
  std::uint64_t fingerprints = 0;
  std::uint64_t pinned_bytes = 0;  // now
  std::uint64_t pins = 0;          // successful calls
};

// A caller's stream: work that runs late, in order. Its address is what a view's `stream` takes.
class HostStream {
 public:
  HostStream(std::uint64_t seed, std::chrono::microseconds delay_max);
  // Runs `work` after a delay, behind all before.
  void Run(std::function<void()> work);
  void Wait() const { worker_.WaitFor(worker_.pushed()); }
  const SerialWorker& worker() const { return worker_; }

 private:
  std::uint64_t random_;
  std::chrono::microseconds delay_max_;
  SerialWorker worker_;
};

// Devices that are host memory, with the worst timing that the interface allows: each queue has a
// thread that does everything late, copies arrive in parts and in any order, and queues overtake
// each other. Aborts on misuse that real devices tolerate: two threads that queue at once, memory
// that is unpinned twice or left pinned. Thread safety: all functions; the queues as CopyQueue
// says.
class HostDevice final : public internal::device::DeviceRuntime {
 public:
  explicit HostDevice(HostDeviceOptions options = {});
  ~HostDevice() override;

  std::unique_ptr<DeviceMemory> Allocate(int device, std::uint64_t size_bytes);
  std::unique_ptr<HostStream> MakeStream();
  HostStream& default_stream(int device);  // what a null stream means

  // The `nth` copy from now, 1 the next, fails in the call that queues it, or later when it runs.
  void FailCopyWhenQueued(std::uint64_t nth);
  void FailCopyWhenRun(std::uint64_t nth);
  // The `nth` ticket from now cannot be had.
  void FailMark(std::uint64_t nth);
  // One bit of what the `nth` copy from now brings arrives flipped, and nothing reports it.
  void FlipBitInCopy(std::uint64_t nth);
  // All that is queued on the device or runs there fails from now on.
  void LoseDevice(int device);
  void RefusePins();
  // While paused, nothing that is queued runs. Resume before queues are destroyed.
  void Pause();
  void Resume();

  HostDeviceCounters counters() const;
  HostDeviceFiles& files() const;

  Status CheckAvailable(int device) override;
  Status CheckKernels(int device) override;
  Result<std::unique_ptr<internal::device::CopyQueue>> MakeQueue(int device) override;
  Status Pin(MutableByteSpan host) override;
  void Unpin(MutableByteSpan host) override;
  Status CheckFiles() override;
  Result<std::unique_ptr<internal::device::DeviceFile>> OpenFile(int descriptor) override;

 private:
  class Queue;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sealpoint::testing

#endif  // SEALPOINT_TESTS_SUPPORT_DEVICE_HOST_DEVICE_H_
