// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_COPIES_TO_DEVICES_H_
#define SEALPOINT_READERS_LOAD_COPIES_TO_DEVICES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "lib/device/device_copies.h"
#include "readers/load/read_plan_data.h"
#include "readers/load/staged_copy.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// Staging buffers hold what cannot be copied from where it lies.
inline constexpr std::uint64_t kStagingBufferMaxBytes = 4 * kMiB;
// The buffer that the copies of a plan need; 0 if all can be copied from where the raw bytes lie.
// `raw_stays`: the raw bytes of chunks without a codec stay in staging memory until they are
// copied.
std::uint64_t StagingBufferBytes(const ReadPlanData& plan, bool raw_stays);

// The copies of one thread to the devices of a plan (DeviceCopies), and a ring of staging buffers
// for them. A buffer is filled again only when all that was copied out of it has arrived. Errors
// are Code::kDevice and name the tensor. Used by one thread at a time. Destruction waits until
// nothing runs any more; the memory must outlive it.
class CopiesToDevices {
 public:
  // Makes the queues and orders them behind the streams of the plan's destinations. The plan must
  // outlive the result.
  static Result<std::unique_ptr<CopiesToDevices>> Open(const ReadPlanData& plan,
                                                       std::shared_ptr<DeviceRuntime> runtime);

  // The ring: equal buffers of at least StagingBufferBytes each. Precondition: all copies are
  // finished.
  void UseStaging(MutableByteSpan memory, std::size_t buffer_count);

  // Writes what `part` describes to staging memory.
  using Pack = std::function<Status(const StridedCopy& part, std::byte* staging)>;
  // Queues a copy of the chunk. `raw` is the chunk where it stays until its fence is passed: what
  // lies in it as it is to arrive is copied from there. Else null: `pack` is called for each part
  // that fits a staging buffer, in row-major order.
  Status Copy(const PlanChunk& chunk, const PlanCopy& copy, const std::byte* raw, const Pack& pack);
  // Queues digests behind all copies to that device; `to` as in CopyQueue::QueueDigests.
  Status QueueDigests(int device, std::uint32_t name, const DeviceChunks& chunks,
                      std::span<Digest> to);

  // To wait for what was queued; labels are numbers in ReadPlanData::names.
  DeviceCopies& queued() { return queued_; }

 private:
  struct StagingRingBuffer {
    MutableByteSpan memory;
    DeviceCopies::Fence fence{};  // behind the copies out of it
  };

  CopiesToDevices(const ReadPlanData& plan, std::shared_ptr<DeviceRuntime> runtime);
  Result<MutableByteSpan> Stage(std::uint64_t size_bytes);
  Status Place(int device, std::uint32_t name, const StridedCopy& place, const std::byte* staging,
               std::byte* target);

  const ReadPlanData& plan_;
  std::vector<StagingRingBuffer> ring_;
  std::size_t filled_ = 0;          // the buffer that is being filled
  std::uint64_t filled_bytes_ = 0;  // of it
  DeviceCopies queued_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_COPIES_TO_DEVICES_H_
