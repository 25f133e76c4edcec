// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_TRANSFER_STAGED_COPIES_H_
#define SEALPOINT_LIB_TRANSFER_STAGED_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/device/device_copies.h"
#include "lib/layout/box_copy.h"
#include "lib/transfer/delivery_plan.h"
#include "sealpoint/bytes.h"
#include "sealpoint/digest.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::transfer {

// Size of staging buffers, for data that cannot be copied directly from the raw bytes.
inline constexpr std::uint64_t kStagingBufferMaxBytes = 4 * kMiB;
// Size of the buffer that the copies of a plan need; 0 if all can be copied from the raw bytes.
// `raw_stays`: the raw bytes of chunks without a codec remain in staging memory until they are
// copied.
std::uint64_t StagingBufferBytes(const DeliveryPlan& plan, bool raw_stays);

// The copies of one thread to the devices of a plan (DeviceCopies), and a ring of staging buffers
// for them. A buffer is reused only after all copies from it are complete. Errors are Code::kDevice
// with the tensor's name, or those of ConvertedCopy. Used by one thread at a time. Destruction
// waits until no copy runs; the memory must outlive it.
class StagedCopies {
 public:
  // Creates the queues and orders them after the streams of the plan's destinations. The plan must
  // outlive the result.
  static Result<std::unique_ptr<StagedCopies>> Open(const DeliveryPlan& plan,
                                                    std::shared_ptr<device::DeviceRuntime> runtime);

  // The ring: equal buffers of at least StagingBufferBytes each. Precondition: all copies are
  // finished.
  void UseStaging(MutableByteSpan memory, std::size_t buffer_count);

  // Queues a copy of the chunk. `raw_stays`: the raw bytes remain unchanged until the fence is
  // passed, so parts without a change of form are copied from them. All other parts are put into
  // staging buffers.
  Status Queue(const PlanChunk& chunk, const PlanCopy& copy, ByteSpan raw, bool raw_stays);
  // Queues digests after all copies to that device; `to` as in CopyQueue::QueueDigests.
  Status QueueDigests(int device, std::uint32_t name, const device::DeviceChunks& chunks,
                      std::span<Digest> to);

  // For waiting for queued copies; labels are numbers in DeliveryPlan::names.
  device::DeviceCopies& queued() { return queued_; }

 private:
  struct StagingRingBuffer {
    MutableByteSpan memory;
    device::DeviceCopies::Fence fence{};  // after the copies from it
  };

  StagedCopies(const DeliveryPlan& plan, std::shared_ptr<device::DeviceRuntime> runtime);
  Result<MutableByteSpan> Stage(std::uint64_t size_bytes);
  Status Place(int device, std::uint32_t name, const layout::StridedCopy& place,
               const std::byte* staging, std::byte* target);

  const DeliveryPlan& plan_;
  std::vector<StagingRingBuffer> ring_;
  std::size_t filled_ = 0;          // the buffer that is being filled
  std::uint64_t filled_bytes_ = 0;  // of it
  device::DeviceCopies queued_;
};

}  // namespace sealpoint::internal::transfer

#endif  // SEALPOINT_LIB_TRANSFER_STAGED_COPIES_H_
