// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_DEVICE_DELIVERY_H_
#define SEALPOINT_LIB_TRANSFER_DEVICE_DELIVERY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/device/staging_pool.h"
#include "lib/transfer/delivery.h"
#include "lib/transfer/staged_copies.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// True if the copy puts the chunk's raw bytes unchanged into contiguous device memory.
inline bool IsWholeOnDevice(const PlanChunk& chunk, const PlanCopy& copy) {
  // If the copy has strides, its elements are smaller than the chunk.
  return copy.way() == CopyWay::kToDevice && !copy.is_converted() &&
         copy.element_size() == chunk.raw_size;
}

// Memory budget of plans with destinations in device memory. Each thread has this many windows (one
// range each, with the digests to check on the device), and as many staging buffers.
struct DeviceStaging {
  int threads = 1;
  std::size_t window_count = 1;
  std::uint64_t window_bytes = 0;
  std::uint64_t digest_bytes = 0;
  std::uint64_t buffer_bytes = 0;

  // More threads take precedence over more windows; with three windows, reading and copying do not
  // wait for each other.
  static DeviceStaging Divide(const DeliveryPlan& plan, int threads,
                              std::uint64_t memory_budget_bytes, bool with_digests);
  std::uint64_t bytes_per_window() const { return window_bytes + digest_bytes + buffer_bytes; }
  std::uint64_t thread_bytes() const { return window_count * bytes_per_window(); }
};

// Queues copies to devices. Each range is read into a window while copies from the previous windows
// are still running. Errors: Device; those of HostDelivery for copies to the host; those of the
// fetcher.
class DeviceDelivery : public Delivery {
 public:
  struct Setup {
    const DeliveryPlan& plan;
    const DeviceStaging& staging;
    MutableByteSpan memory;  // staging.thread_bytes() of the pool, which outlive this
    bool isolates = false;
    // Devices compute the digests of whole chunks that arrived, which are compared.
    bool verifies = false;
  };
  DeviceDelivery(const Setup& setup, std::unique_ptr<StagedCopies> copies);

  bool reads_in_place() const override { return !isolates_; }
  Result<FetchTarget> Prepare(const PlanRange& range, RangeFetcher& fetcher) override;
  Status Begin(const PlanChunk& chunk, ByteSpan raw) override;
  Status EndRange() override;
  Status Complete() override;
  DeviceBytes device_bytes() const override { return bytes_; }

 protected:
  const DeliveryPlan& plan() const { return plan_; }
  // The chunks of the current range are in device memory and not yet verified.
  Status AddDirect();
  device::DeviceCopies& queued() { return copies_->queued(); }

 private:
  struct Window {
    MutableByteSpan memory{};
    std::span<Digest> digests{};
    device::DeviceCopies::Fence fence{};
    const PlanRange* range = nullptr;
    RangeFetcher* fetcher = nullptr;          // of the range
    bool is_direct = false;                   // not read by the host
    std::vector<const PlanChunk*> checked{};  // a digest each
  };
  // Adjacent chunks in device memory with digests still to queue.
  struct Series {
    int device = kHostDevice;
    std::uint32_t name = 0;
    device::DeviceChunks chunks{};
    std::size_t first_digest = 0;
  };

  Status CompleteWindow(Window& window);
  static Status CheckFile(const Window& window);
  Status AddChecks(const PlanChunk& chunk);
  Status QueueSeries();

  const DeliveryPlan& plan_;
  const bool isolates_;
  const bool verifies_;
  std::vector<Window> windows_;
  std::size_t next_window_ = 0;
  Window* current_ = nullptr;  // of the range that is being fetched
  Series series_;
  DeviceBytes bytes_;
  std::unique_ptr<StagedCopies> copies_;
};

// The same for raw bytes that are invalid after Begin: all use staging buffers, which are lent for
// the first chunk that needs them and returned by Complete; further chunks may follow. Reads
// nothing.
class StagedDelivery final : public Delivery {
 public:
  // `buffer_max_bytes` limits each of the two buffers.
  StagedDelivery(const DeliveryPlan& plan, std::unique_ptr<StagedCopies> copies,
                 device::StagingPool& pool, std::uint64_t buffer_max_bytes);

  Result<FetchTarget> Prepare(const PlanRange&, RangeFetcher&) override { return FetchTarget(); }
  Status Begin(const PlanChunk& chunk, ByteSpan raw) override;
  Status Complete() override;

 private:
  const DeliveryPlan& plan_;
  device::StagingPool& pool_;
  const std::uint64_t buffer_bytes_;
  device::StagingBuffer memory_;  // outlives the copies
  std::unique_ptr<StagedCopies> copies_;
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_DEVICE_DELIVERY_H_
