// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_DEVICE_COPIES_H_
#define SEALPOINT_LIB_DEVICE_DEVICE_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "lib/device/device_runtime.h"
#include "lib/device/queue_pool.h"
#include "lib/device/staging_pool.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::device {

// What one writer or reader has queued on devices: a queue per device, and tickets that tell when
// the copies have arrived. Small copies share a ticket, since each ticket costs an event. The host
// memory of a copy must outlive this object, or Stop.
//
// The first error stays: every later call returns it. All errors are Code::kDevice.
//
// Thread safety: one thread at a time.
class DeviceCopies {
 public:
  // Adds to an error what its label means, such as the name of a tensor.
  using Describe = std::function<Status(std::uint32_t label, Status error)>;
  struct Options {
    // Queues come from here, and go back if nothing failed; else each object makes its own.
    QueuePool* idle_queues = nullptr;
    // Pinned as soon as there is a queue.
    StagingPool* pinned_pool = nullptr;
    Describe describe{};  // errors stay as they are without it
  };
  // A point in the work that is queued on one device. A default one is before all work.
  struct Point {
    std::size_t lane = 0;
    std::uint64_t batch_count = 0;  // batches of the lane before this point
  };
  using Fence = std::vector<Point>;  // a point for each device

  // Makes no queue yet.
  explicit DeviceCopies(std::shared_ptr<DeviceRuntime> runtime) : runtime_(std::move(runtime)) {}
  DeviceCopies(std::shared_ptr<DeviceRuntime> runtime, Options options)
      : runtime_(std::move(runtime)), options_(std::move(options)) {}
  // Waits until nothing runs any more.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  // What is queued for the device from now on runs after all that is on the caller's stream now.
  // Does nothing if that stream was named since the last ForgetStreams.
  Status FollowStream(int device, void* stream, std::uint32_t label = 0);
  // The next call of the user begins: what the streams hold by then counts again.
  void ForgetStreams() { followed_.clear(); }

  // Runs queue_it(queue), which queues `bytes`, with the queue of the device. Returns the point
  // after it. Work with another label gets another ticket, so that an error is described right.
  template <typename QueueIt>
  Result<Point> Queue(int device, std::uint64_t bytes, const QueueIt& queue_it,
                      std::uint32_t label = 0) {
    auto lane = Begin(device, label);
    if (!lane.ok()) return std::move(lane).error();
    Status queued = queue_it(*lanes_[*lane].queue);
    if (!queued.ok()) return Fail(label, std::move(queued));
    return Join(*lane, bytes, label);
  }

  // Waits until all before the point is done.
  Status Wait(const Point& point);
  // A fence after all that is queued so far. Waiting for it does not wait for what comes later.
  Status Mark(Fence& fence);
  Status Wait(const Fence& fence);
  Status WaitForAll();
  // The same, and until all is done that the queues follow.
  Status WaitForStreams();
  // Waits until nothing runs any more, also after errors. Nothing can be queued afterwards.
  void Stop();

 private:
  // Work that shares a ticket, which is taken when the batch is full, or is waited for.
  struct Batch {
    std::uint32_t label = 0;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> ticket{};
  };
  // What is queued on one device.
  struct Lane {
    std::unique_ptr<CopyQueue> queue;
    std::uint32_t label = 0;       // of what was queued last
    std::deque<Batch> batches{};   // not yet waited for; only the last may be without a ticket
    std::uint64_t done_count = 0;  // batches before these
    std::uint64_t batch_count() const { return done_count + batches.size(); }
  };

  Result<std::size_t> LaneOf(int device, std::uint32_t label);
  Result<std::size_t> Begin(int device, std::uint32_t label);
  Result<Point> Join(std::size_t lane, std::uint64_t bytes, std::uint32_t label);
  Status TakeTicket(Lane& lane);
  Status Fail(std::uint32_t label, Status error);

  const std::shared_ptr<DeviceRuntime> runtime_;
  const Options options_;
  std::vector<Lane> lanes_;
  std::set<std::pair<int, void*>> followed_;  // device and stream
  Status failure_;                            // the first
};

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_DEVICE_COPIES_H_
