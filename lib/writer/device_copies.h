// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_WRITER_DEVICE_COPIES_H_
#define SEALPOINT_LIB_WRITER_DEVICE_COPIES_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "lib/device/device_runtime.h"
#include "lib/pipeline/engine_parts.h"
#include "sealpoint/memory_view.h"
#include "sealpoint/status.h"

namespace sealpoint::internal {

// The copies of one writer from devices: a queue per device, and tickets for many small pieces
// together. Whatever such a copy writes into must outlive this object, or Stop.
//
// Thread safety: one thread at a time.
class DeviceCopies {
 public:
  // Copies that arrive together.
  struct Batch {
    CopyQueue* queue = nullptr;
    std::uint64_t bytes = 0;
    std::optional<std::uint64_t> ticket{};
  };

  explicit DeviceCopies(EngineParts& engine) : engine_(engine) {}
  // Queues on which nothing is left and nothing failed go back to the engine.
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  // Runs queue_it(queue) with the queue for this memory, on which it comes behind all that was on
  // the view's stream when the stream was first named since the last Forget. Returns the batch for
  // `bytes`, which is valid as long as this object. After an error nothing more can be queued.
  template <typename QueueIt>
  Result<Batch*> Queue(const ConstMemoryView& view, std::uint64_t bytes, const QueueIt& queue_it) {
    auto queue = QueueFor(view);
    if (!queue.ok()) return Fail(std::move(queue).error());
    Status queued = queue_it(**queue);
    if (!queued.ok()) return Fail(std::move(queued));
    auto batch = Join(**queue, bytes);
    if (!batch.ok()) return Fail(std::move(batch).error());
    return batch;
  }
  // The next call of the user begins: what his streams hold by then counts again.
  void Forget() { ordered_.clear(); }
  // Waits until all of the batch have arrived. Errors: Device.
  Status Await(Batch& batch);
  // The same for all that was queued.
  Status AwaitAll();
  // Waits until nothing runs any more, also after errors. Nothing can be queued behind that.
  void Stop();

 private:
  Result<CopyQueue*> QueueFor(const ConstMemoryView& view);
  Result<Batch*> Join(CopyQueue& queue, std::uint64_t bytes);
  Status Mark(Batch& batch);
  Status Fail(Status why);

  EngineParts& engine_;
  std::map<int, std::unique_ptr<CopyQueue>> queues_;  // by device
  std::map<CopyQueue*, Batch*> newest_;
  std::deque<Batch> batches_;
  std::set<std::pair<int, void*>> ordered_;
  Status failure_;  // the first
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_WRITER_DEVICE_COPIES_H_
