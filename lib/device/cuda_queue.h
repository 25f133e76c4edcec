// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_CUDA_QUEUE_H_
#define SEALPOINT_LIB_DEVICE_CUDA_QUEUE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "lib/device/cuda_device.h"
#include "lib/device/device_runtime.h"

namespace sealpoint::internal::device {

// Events of a device that are used again: making one costs more than recording it. All calls with
// the device's context current. Thread safety: all functions.
class CudaEvents {
 public:
  explicit CudaEvents(CudaDevice& device) : device_(device) {}
  ~CudaEvents() = default;
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;

  // Comes back when the last owner lets go.
  Result<std::shared_ptr<cuda::Event>> Take();
  // Destroys the returned events; all others exist until the process ends.
  void DestroyIdle();

 private:
  void GiveBack(cuda::Event* event);

  CudaDevice& device_;
  std::mutex mutex_;
  std::vector<cuda::Event*> idle_;
};

// A CopyQueue on a non-blocking stream of its own: the default stream neither waits for it nor is
// waited for.
class CudaQueue final : public CopyQueue {
 public:
  // Device memory for the steps of kernels, allocated at the first use.
  static constexpr std::uint64_t kScratchBytes = 10 * kMiB + 512 * kKiB;

  // The device must outlive the queue.
  static Result<std::unique_ptr<CopyQueue>> Create(CudaDevice& device);
  ~CudaQueue() override;

  int device() const override { return device_.number; }
  Status WaitFor(void* callers_stream) override;
  Status CopyToHost(const DeviceRows& from, MutableByteSpan to) override;
  Status CopyToDevice(ByteSpan from, const MutableDeviceRows& to) override;
  Status QueueDigests(const DeviceChunks& chunks, std::span<Digest> to) override;
  Status QueueFingerprint(const fingerprint::Part& part, const std::byte* data,
                          fingerprint::Pair& to) override;
  Result<std::uint64_t> Mark() override;
  Result<bool> IsDone(std::uint64_t ticket) override;
  Status Wait(std::uint64_t ticket) override;

 private:
  explicit CudaQueue(CudaDevice& device) : device_(device), events_(device) {}

  Status CheckNotCaptured(cuda::Stream* stream) const;
  Status ReserveScratch();
  // The event of a ticket, null if that is known to be done.
  std::shared_ptr<cuda::Event> EventOf(std::uint64_t ticket);
  void NoteDone(std::uint64_t ticket);

  CudaDevice& device_;
  CudaEvents events_;
  cuda::Stream* stream_ = nullptr;
  std::shared_ptr<cuda::Event> order_;  // for WaitFor alone
  cuda::Address scratch_ = 0;

  std::mutex mutex_;
  // Guarded: tickets that are not known to be done; all of them are greater than done_.
  std::map<std::uint64_t, std::shared_ptr<cuda::Event>> pending_;
  std::uint64_t done_ = 0;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_CUDA_QUEUE_H_
