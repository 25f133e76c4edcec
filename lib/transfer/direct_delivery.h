// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_DIRECT_DELIVERY_H_
#define SEALPOINT_LIB_TRANSFER_DIRECT_DELIVERY_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/device/device_runtime.h"
#include "lib/transfer/device_delivery.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint::internal::transfer {

// Chunks of a range that a device can read at once: back to back in its memory as in the file.
struct DirectRun {
  int device = 0;
  std::byte* to = nullptr;
  const PlanChunk* first = nullptr;
  std::uint64_t size_bytes = 0;
};

// All chunks of the range; empty unless every chunk goes unchanged to contiguous memory of one
// device.
std::vector<DirectRun> DirectRunsOf(const DeliveryPlan& plan, const PlanRange& range);

// The blobs of a plan as files that devices can read. Other blobs are left to the host; its read
// reports the error if the file has one. Thread safety: all functions.
class DirectFiles {
 public:
  // Opens a blob for direct I/O.
  using OpenBlob = std::function<Result<std::shared_ptr<const ReadableFile>>(std::uint32_t blob)>;
  DirectFiles(OpenBlob open_blob, std::shared_ptr<device::DeviceRuntime> devices)
      : open_blob_(std::move(open_blob)), devices_(std::move(devices)) {}

  // Null if the host must read the blob.
  std::shared_ptr<device::DeviceFile> Open(std::uint32_t blob);
  // Devices could not read it after all.
  void Refuse(std::uint32_t blob);

 private:
  struct Entry {
    std::uint32_t blob = 0;
    std::shared_ptr<const ReadableFile> file{};         // outlives all users of its descriptor
    std::unique_ptr<device::DeviceFile> device_file{};  // null if devices cannot read it
  };
  std::shared_ptr<Entry> Make(std::uint32_t blob);

  const OpenBlob open_blob_;
  const std::shared_ptr<device::DeviceRuntime> devices_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Entry>> open_;  // guarded; oldest first
};

// Devices read and verify the data that they can read directly; all other data is handled by
// DeviceDelivery. The staging must have digests.
class DirectDelivery final : public DeviceDelivery {
 public:
  // `files` outlives this.
  DirectDelivery(const Setup& setup, std::unique_ptr<StagedCopies> copies, DirectFiles& files)
      : DeviceDelivery(setup, std::move(copies)), files_(files) {}

  Result<FetchTarget> Prepare(const PlanRange& range, RangeFetcher& fetcher) override;

 private:
  Result<bool> Read(const PlanRange& range, const RangeFetcher& fetcher);

  DirectFiles& files_;
  bool callers_are_done_ = false;  // their streams were waited for
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_DIRECT_DELIVERY_H_
