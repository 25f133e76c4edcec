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

// Copies that one writer or reader has queued on devices: one queue per device, and tickets that
// tell when the copies are complete. Small copies share a ticket, because each ticket costs an
// event. The host memory of a copy must outlive this object, or the call of Stop.
//
// The first error is kept: every later call returns it. All errors are Code::kDevice.
//
// Thread safety: one thread at a time.
class DeviceCopies {
 public:
  // Adds the meaning of a label to an error, such as the name of a tensor.
  using Describe = std::function<Status(std::uint32_t label, Status error)>;
  struct Options {
    // Source of queues. They are returned unless a copy failed. Null: each object creates its own.
    QueuePool* idle_queues = nullptr;
    // Pinned as soon as there is a queue.
    StagingPool* pinned_pool = nullptr;
    Describe describe{};  // without it, errors are passed unchanged
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
  // Waits until no copy runs.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  // Later work for the device runs after all work that is on the caller's stream now. Does nothing
  // if that stream was already named since the last ForgetStreams.
  Status FollowStream(int device, void* stream, std::uint32_t label = 0);
  // Marks the start of the user's next call: work queued on the streams until then must be waited
  // for again.
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
  // A fence after all work queued so far. Waiting for it does not wait for later work.
  Status Mark(Fence& fence);
  Status Wait(const Fence& fence);
  Status WaitForAll();
  // The same, and until all is done that the queues follow.
  Status WaitForStreams();
  // Waits until no copy runs, also after errors. No copies can be queued afterwards.
  void Stop();

 private:
  // Work that shares a ticket, which is taken when the batch is full, or is waited for.
  struct Batch {
    std::uint32_t label = 0;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> ticket{};
  };
  // Work queued on one device.
  struct Lane {
    std::unique_ptr<CopyQueue> queue;
    std::uint32_t label = 0;       // of the last queued copy
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
