// SPDX-License-Identifier: Apache-2.0
#include "lib/device/device_copies.h"

#include <algorithm>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::device {
namespace {

// A ticket costs an event, which keeps the link idle for a microsecond: one for so many bytes.
constexpr std::uint64_t kBatchSizeBytes = 16 * kMiB;

}  // namespace

DeviceCopies::~DeviceCopies() {
  if (options_.idle_queues == nullptr) return;  // a queue waits when it is destroyed
  // A queue in the pool must be idle: the next user does not know this one's memory.
  if (!WaitForAll().ok()) {
    Stop();
    return;
  }
  for (Lane& lane : lanes_) options_.idle_queues->Return(std::move(lane.queue));
}

void DeviceCopies::Stop() {
  lanes_.clear();
  if (failure_.ok()) failure_ = MakeError(Code::kDevice, "copies from devices were stopped");
}

Status DeviceCopies::Fail(std::uint32_t label, Status error) {
  failure_ = options_.describe ? options_.describe(label, std::move(error)) : std::move(error);
  return failure_;
}

Result<std::size_t> DeviceCopies::LaneOf(int device, std::uint32_t label) {
  SEALPOINT_RETURN_IF_ERROR(failure_);
  const auto found = std::find_if(lanes_.begin(), lanes_.end(), [device](const Lane& lane) {
    return lane.queue->device() == device;
  });
  if (found != lanes_.end()) return static_cast<std::size_t>(found - lanes_.begin());
  auto queue = options_.idle_queues != nullptr ? options_.idle_queues->Take(*runtime_, device)
                                               : runtime_->MakeQueue(device);
  if (!queue.ok()) return Fail(label, std::move(queue).error());
  // Memory can be pinned only once a queue was made (DeviceRuntime::Pin).
  if (options_.pinned_pool != nullptr) options_.pinned_pool->PinWith(runtime_);
  lanes_.push_back({.queue = std::move(queue).value(), .label = label});
  return lanes_.size() - 1;
}

Status DeviceCopies::FollowStream(int device, void* stream, std::uint32_t label) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::size_t lane, LaneOf(device, label));
  if (!followed_.emplace(device, stream).second) return {};
  Status status = lanes_[lane].queue->WaitFor(stream);
  return status.ok() ? status : Fail(label, std::move(status));
}

Result<std::size_t> DeviceCopies::Begin(int device, std::uint32_t label) {
  SEALPOINT_ASSIGN_OR_RETURN(const std::size_t number, LaneOf(device, label));
  Lane& lane = lanes_[number];
  // Before the new work is queued: a ticket must not wait for more than its own label.
  if (!lane.batches.empty() && lane.batches.back().label != label) {
    SEALPOINT_RETURN_IF_ERROR(TakeTicket(lane));
  }
  lane.label = label;
  return number;
}

Result<DeviceCopies::Point> DeviceCopies::Join(std::size_t number, std::uint64_t bytes,
                                               std::uint32_t label) {
  Lane& lane = lanes_[number];
  if (lane.batches.empty() || lane.batches.back().ticket) lane.batches.push_back({.label = label});
  Batch& batch = lane.batches.back();
  batch.bytes += bytes;
  if (batch.bytes >= kBatchSizeBytes) SEALPOINT_RETURN_IF_ERROR(TakeTicket(lane));
  return Point{.lane = number, .batch_count = lane.batch_count()};
}

// For the last batch, unless it has one.
Status DeviceCopies::TakeTicket(Lane& lane) {
  if (lane.batches.empty() || lane.batches.back().ticket) return {};
  Batch& batch = lane.batches.back();
  const auto ticket = lane.queue->Mark();
  if (!ticket.ok()) return Fail(batch.label, ticket.error());
  batch.ticket = *ticket;
  return {};
}

Status DeviceCopies::Wait(const Point& point) {
  SEALPOINT_RETURN_IF_ERROR(failure_);
  if (point.batch_count == 0) return {};
  Lane& lane = lanes_[point.lane];
  while (lane.done_count < point.batch_count) {
    // A queue works in order: of batches in a row with one label only the last is waited for.
    const std::uint64_t count_max = point.batch_count - lane.done_count;
    std::size_t count = 1;
    while (count < count_max && lane.batches[count].label == lane.batches[0].label) ++count;
    if (count == lane.batches.size()) SEALPOINT_RETURN_IF_ERROR(TakeTicket(lane));
    const Batch& last = lane.batches[count - 1];
    Status status = lane.queue->Wait(*last.ticket);
    if (!status.ok()) return Fail(last.label, std::move(status));
    lane.batches.erase(lane.batches.begin(),
                       lane.batches.begin() + static_cast<std::ptrdiff_t>(count));
    lane.done_count += count;
  }
  return {};
}

Status DeviceCopies::Mark(Fence& fence) {
  SEALPOINT_RETURN_IF_ERROR(failure_);
  fence.clear();
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    SEALPOINT_RETURN_IF_ERROR(TakeTicket(lanes_[i]));
    fence.push_back({.lane = i, .batch_count = lanes_[i].batch_count()});
  }
  return {};
}

Status DeviceCopies::Wait(const Fence& fence) {
  for (const Point& point : fence) SEALPOINT_RETURN_IF_ERROR(Wait(point));
  return {};
}

Status DeviceCopies::WaitForAll() {
  Fence fence;
  SEALPOINT_RETURN_IF_ERROR(Mark(fence));
  return Wait(fence);
}

Status DeviceCopies::WaitForStreams() {
  // A queue that waits for a stream may have no work of its own yet, and so no ticket.
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    SEALPOINT_RETURN_IF_ERROR(Join(i, 0, lanes_[i].label).status());
  }
  return WaitForAll();
}

}  // namespace sealpoint::internal::device
