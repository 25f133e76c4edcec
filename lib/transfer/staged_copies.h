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

// Staging buffers hold what cannot be copied from the raw bytes.
inline constexpr std::uint64_t kStagingBufferMaxBytes = 4 * kMiB;
// The buffer that the copies of a plan need; 0 if all can be copied from the raw bytes.
// `raw_stays`: the raw bytes of chunks without a codec stay in staging memory until they are
// copied.
std::uint64_t StagingBufferBytes(const DeliveryPlan& plan, bool raw_stays);

// The copies of one thread to the devices of a plan (DeviceCopies), and a ring of staging buffers
// for them. A buffer is filled again only when all that was copied out of it has arrived. Errors
// are Code::kDevice and name the tensor, or those of ConvertedCopy. Used by one thread at a time.
// Destruction waits until nothing runs any more; the memory must outlive it.
class StagedCopies {
 public:
  // Makes the queues and orders them behind the streams of the plan's destinations. The plan must
  // outlive the result.
  static Result<std::unique_ptr<StagedCopies>> Open(const DeliveryPlan& plan,
                                                    std::shared_ptr<device::DeviceRuntime> runtime);

  // The ring: equal buffers of at least StagingBufferBytes each. Precondition: all copies are
  // finished.
  void UseStaging(MutableByteSpan memory, std::size_t buffer_count);

  // Queues a copy of the chunk. `raw_stays`: the raw bytes stay as they are until the fence is
  // passed, and what arrives as it is there is copied from there. All else is put into staging
  // buffers, part by part.
  Status Queue(const PlanChunk& chunk, const PlanCopy& copy, ByteSpan raw, bool raw_stays);
  // Queues digests behind all copies to that device; `to` as in CopyQueue::QueueDigests.
  Status QueueDigests(int device, std::uint32_t name, const device::DeviceChunks& chunks,
                      std::span<Digest> to);

  // To wait for what was queued; labels are numbers in DeliveryPlan::names.
  device::DeviceCopies& queued() { return queued_; }

 private:
  struct StagingRingBuffer {
    MutableByteSpan memory;
    device::DeviceCopies::Fence fence{};  // behind the copies out of it
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
