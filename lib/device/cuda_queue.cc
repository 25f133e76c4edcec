// SPDX-License-Identifier: Apache-2.0
#include "lib/device/cuda_queue.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "lib/base/errors.h"
#include "lib/base/macros.h"

namespace sealpoint::internal::device {
namespace {

cuda::Address AddressOf(const std::byte* data) {
  return static_cast<cuda::Address>(reinterpret_cast<std::uintptr_t>(data));
}

// How rows are copied: all at once, by the 2D engine, or one by one.
template <typename Byte>
bool IsOneRange(const BasicDeviceRows<Byte>& rows) {
  return rows.row_count == 1 || rows.pitch_bytes == static_cast<std::int64_t>(rows.row_bytes);
}
template <typename Byte>
bool FitsCopy2D(const BasicDeviceRows<Byte>& rows, std::int64_t pitch_max) {
  return rows.pitch_bytes <= pitch_max &&
         rows.pitch_bytes >= static_cast<std::int64_t>(rows.row_bytes);
}
// copy(device address, offset on the host, size) for each row, or once for all.
template <typename Byte, typename Copy>
Status ForEachRange(const BasicDeviceRows<Byte>& rows, const Copy& copy) {
  if (IsOneRange(rows)) return copy(AddressOf(rows.data), 0, rows.size_bytes());
  for (std::uint64_t r = 0; r < rows.row_count; ++r) {
    // Modulo 2^64: a negative pitch wraps around and back.
    const std::uint64_t offset = r * static_cast<std::uint64_t>(rows.pitch_bytes);
    SEALPOINT_RETURN_IF_ERROR(
        copy(AddressOf(rows.data) + offset, r * rows.row_bytes, rows.row_bytes));
  }
  return {};
}

}  // namespace

void CudaEvents::DestroyIdle() {
  const std::lock_guard lock(mutex_);
  for (cuda::Event* const event : idle_) device_.driver.event_destroy(event);
  idle_.clear();
}

Result<std::shared_ptr<cuda::Event>> CudaEvents::Take() {
  cuda::Event* event = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      event = idle_.back();
      idle_.pop_back();
    }
  }
  if (event == nullptr) {
    // A thread that waits for one sleeps: its core belongs to the training.
    constexpr unsigned kFlags = cuda::kEventDisableTiming | cuda::kEventBlockingSync;
    SEALPOINT_RETURN_IF_ERROR(
        device_.Check(device_.driver.event_create(&event, kFlags), "cuEventCreate"));
  }
  return std::shared_ptr<cuda::Event>(event, [this](cuda::Event* used) { GiveBack(used); });
}

void CudaEvents::GiveBack(cuda::Event* event) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(event);
}

Result<std::unique_ptr<CopyQueue>> CudaQueue::Create(CudaDevice& device) {
  const cuda::CurrentContext current(device.driver, device.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  std::unique_ptr<CudaQueue> queue(new CudaQueue(device));
  SEALPOINT_RETURN_IF_ERROR(device.Check(
      device.driver.stream_create(&queue->stream_, cuda::kStreamNonBlocking), "cuStreamCreate"));
  SEALPOINT_ASSIGN_OR_RETURN(queue->order_, queue->events_.Take());
  return std::unique_ptr<CopyQueue>(std::move(queue));
}

CudaQueue::~CudaQueue() {
  const bool is_child = !device_.CheckProcess().ok();
  std::optional<cuda::CurrentContext> current;
  if (!is_child) current.emplace(device_.driver, device_.context);
  const bool usable = current && current->status().ok();
  // Where that fails the context is lost, and nothing runs in it any more.
  if (usable && stream_ != nullptr) device_.driver.stream_synchronize(stream_);
  order_.reset();
  pending_.clear();
  if (!usable) return;
  if (scratch_ != 0) device_.driver.memory_free(scratch_);
  if (stream_ != nullptr) device_.driver.stream_destroy(stream_);
  events_.DestroyIdle();
}

Status CudaQueue::CheckNotCaptured(cuda::Stream* stream) const {
  int status = cuda::kCaptureStatusNone;
  SEALPOINT_RETURN_IF_ERROR(
      device_.Check(device_.driver.stream_is_capturing(stream, &status), "cuStreamIsCapturing"));
  if (status == cuda::kCaptureStatusNone) return {};
  return MakeError(Code::kDevice, "the stream of a view is being captured into a graph");
}

Status CudaQueue::WaitFor(void* callers_stream) {
  auto* const stream = static_cast<cuda::Stream*>(callers_stream);
  SEALPOINT_RETURN_IF_ERROR(device_.CheckProcess());
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  SEALPOINT_RETURN_IF_ERROR(CheckNotCaptured(stream));
  // The wait keeps the state that the event has now; it may be recorded anew at once.
  SEALPOINT_RETURN_IF_ERROR(
      device_.Check(device_.driver.event_record(order_.get(), stream), "cuEventRecord"));
  return device_.Check(device_.driver.stream_wait_event(stream_, order_.get(), 0),
                       "cuStreamWaitEvent");
}

Status CudaQueue::CopyToHost(const DeviceRows& from, MutableByteSpan to) {
  SEALPOINT_CHECK(to.size() == from.size_bytes());
  SEALPOINT_RETURN_IF_ERROR(device_.CheckProcess());
  if (to.empty()) return {};
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  if (!IsOneRange(from) && FitsCopy2D(from, device_.pitch_max_bytes)) {
    const cuda::Copy2D copy{.source_type = cuda::kMemoryTypeDevice,
                            .source_device = AddressOf(from.data),
                            .source_pitch = static_cast<std::size_t>(from.pitch_bytes),
                            .target_type = cuda::kMemoryTypeHost,
                            .target_host = to.data(),
                            .target_pitch = from.row_bytes,
                            .width_bytes = from.row_bytes,
                            .height = from.row_count};
    return device_.Check(device_.driver.copy_2d(&copy, stream_), "cuMemcpy2DAsync");
  }
  return ForEachRange(from, [&](cuda::Address row, std::size_t offset, std::size_t size) {
    return device_.Check(device_.driver.copy_to_host(to.data() + offset, row, size, stream_),
                         "cuMemcpyDtoHAsync");
  });
}

Status CudaQueue::CopyToDevice(ByteSpan from, const MutableDeviceRows& to) {
  SEALPOINT_CHECK(from.size() == to.size_bytes());
  SEALPOINT_RETURN_IF_ERROR(device_.CheckProcess());
  if (from.empty()) return {};
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  if (!IsOneRange(to) && FitsCopy2D(to, device_.pitch_max_bytes)) {
    const cuda::Copy2D copy{.source_type = cuda::kMemoryTypeHost,
                            .source_host = from.data(),
                            .source_pitch = to.row_bytes,
                            .target_type = cuda::kMemoryTypeDevice,
                            .target_device = AddressOf(to.data),
                            .target_pitch = static_cast<std::size_t>(to.pitch_bytes),
                            .width_bytes = to.row_bytes,
                            .height = to.row_count};
    return device_.Check(device_.driver.copy_2d(&copy, stream_), "cuMemcpy2DAsync");
  }
  return ForEachRange(to, [&](cuda::Address row, std::size_t offset, std::size_t size) {
    return device_.Check(device_.driver.copy_to_device(row, from.data() + offset, size, stream_),
                         "cuMemcpyHtoDAsync");
  });
}

Status CudaQueue::ReserveScratch() {
  if (scratch_ != 0) return {};
  return device_.Check(device_.driver.memory_allocate(&scratch_, kScratchBytes), "cuMemAlloc");
}

Result<std::uint64_t> CudaQueue::Mark() {
  SEALPOINT_RETURN_IF_ERROR(device_.CheckProcess());
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  SEALPOINT_ASSIGN_OR_RETURN(std::shared_ptr<cuda::Event> event, events_.Take());
  SEALPOINT_RETURN_IF_ERROR(
      device_.Check(device_.driver.event_record(event.get(), stream_), "cuEventRecord"));
  const std::lock_guard lock(mutex_);
  pending_.emplace(++last_ticket_, std::move(event));
  return last_ticket_;
}

std::shared_ptr<cuda::Event> CudaQueue::EventOf(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  SEALPOINT_CHECK(ticket != 0 && ticket <= last_ticket_);
  return ticket <= done_ ? nullptr : pending_.at(ticket);
}

// The stream runs in order: all before the ticket are done too.
void CudaQueue::NoteDone(std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  done_ = std::max(done_, ticket);
  pending_.erase(pending_.begin(), pending_.upper_bound(ticket));
}

Result<bool> CudaQueue::IsDone(std::uint64_t ticket) {
  SEALPOINT_RETURN_IF_ERROR(device_.CheckProcess());
  const auto event = EventOf(ticket);
  if (event == nullptr) return true;
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  const int result = device_.driver.event_query(event.get());
  if (result == cuda::kNotReady) return false;
  SEALPOINT_RETURN_IF_ERROR(device_.Check(result, "cuEventQuery"));
  NoteDone(ticket);
  return true;
}

Status CudaQueue::Wait(std::uint64_t ticket) {
  SEALPOINT_RETURN_IF_ERROR(device_.CheckProcess());
  const auto event = EventOf(ticket);
  if (event == nullptr) return {};
  const cuda::CurrentContext current(device_.driver, device_.context);
  SEALPOINT_RETURN_IF_ERROR(current.status());
  SEALPOINT_RETURN_IF_ERROR(
      device_.Check(device_.driver.event_synchronize(event.get()), "cuEventSynchronize"));
  NoteDone(ticket);
  return {};
}

}  // namespace sealpoint::internal::device
