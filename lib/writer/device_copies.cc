// SPDX-License-Identifier: Apache-2.0
#include "lib/writer/device_copies.h"

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal {
namespace {

// A ticket costs an event: one for so many bytes.
constexpr std::uint64_t kBatchSizeBytes = kMiB;

}  // namespace

DeviceCopies::~DeviceCopies() {
  if (!AwaitAll().ok()) Stop();
  for (auto& [device, queue] : queues_) engine_.queues.Return(std::move(queue));
}

void DeviceCopies::Stop() {
  queues_.clear();
  if (failure_.ok()) failure_ = MakeError(Code::kDevice, "copies from devices were stopped");
}

Status DeviceCopies::Fail(Status why) {
  failure_ = why;
  return why;
}

Result<CopyQueue*> DeviceCopies::QueueFor(const ConstMemoryView& view) {
  SEALPOINT_RETURN_IF_ERROR(failure_);
  const auto found = queues_.find(view.device);
  CopyQueue* queue = found == queues_.end() ? nullptr : found->second.get();
  if (queue == nullptr) {
    SEALPOINT_ASSIGN_OR_RETURN(auto taken, engine_.queues.Take(*engine_.device, view.device));
    engine_.pool->PinWith(engine_.device);
    queue = taken.get();
    queues_.emplace(view.device, std::move(taken));
  }
  if (ordered_.emplace(view.device, view.stream).second) {
    SEALPOINT_RETURN_IF_ERROR(queue->WaitFor(view.stream));
  }
  return queue;
}

Result<DeviceCopies::Batch*> DeviceCopies::Join(CopyQueue& queue, std::uint64_t bytes) {
  Batch*& newest = newest_[&queue];
  if (newest == nullptr || newest->ticket) newest = &batches_.emplace_back(Batch{.queue = &queue});
  Batch* const batch = newest;
  batch->bytes += bytes;
  if (batch->bytes >= kBatchSizeBytes) SEALPOINT_RETURN_IF_ERROR(Mark(*batch));
  return batch;
}

Status DeviceCopies::Mark(Batch& batch) {
  SEALPOINT_ASSIGN_OR_RETURN(batch.ticket, batch.queue->Mark());
  return {};
}

Status DeviceCopies::Await(Batch& batch) {
  SEALPOINT_RETURN_IF_ERROR(failure_);
  if (!batch.ticket) {
    Status marked = Mark(batch);
    if (!marked.ok()) return Fail(std::move(marked));
  }
  Status status = batch.queue->Wait(*batch.ticket);
  return status.ok() ? status : Fail(std::move(status));
}

Status DeviceCopies::AwaitAll() {
  SEALPOINT_RETURN_IF_ERROR(failure_);
  // Queues work in order.
  for (const auto& [queue, batch] : newest_) SEALPOINT_RETURN_IF_ERROR(Await(*batch));
  return {};
}

}  // namespace sealpoint::internal
