// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/engine.h"

#include <unistd.h>

#include <algorithm>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/device/cuda_runtime.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/pipeline/thread_pool.h"

namespace sealpoint {
namespace internal::pipeline {

Status EngineParts::CheckUsable() const {
  if (getpid() == owner_pid) return {};
  return InvalidArgument("engine cannot be used in a child after fork; create one there");
}

std::uint64_t EngineParts::BuffersOf(std::uint64_t bytes) const {
  return DivideRoundUp(bytes, pool->buffer_size_bytes());
}

Status EngineParts::TooSmallFor(std::uint64_t part_size_bytes) const {
  const std::uint64_t blobs = open_blobs_ + 1;
  if (part_size_bytes == 0) {
    return InvalidArgument("memory budget has ", pool->buffer_count(),
                           " staging buffers, of which ", held_buffers_,
                           " are reserved for saves in the background: too few for ", blobs,
                           " blobs written at the same time");
  }
  const std::uint64_t needed =
      held_buffers_ + part_buffers_ + BuffersOf(part_size_bytes) + blobs + 1;
  return InvalidArgument("memory_budget_bytes is ", options.memory_budget_bytes,
                         ", expected at least ", needed * pool->buffer_size_bytes(), " for ", blobs,
                         " blobs written at the same time, each with a part of ", part_size_bytes,
                         " bytes of its upload, and ", held_buffers_,
                         " staging buffers of saves in the background");
}

// Without the lock: what it waits for may be given back meanwhile.
Status EngineParts::WithdrawPart(std::uint64_t buffer_count,
                                 const std::function<Result<bool>()>& drain) {
  bool may_drain = drain != nullptr;
  while (!pool->TryWithdraw(buffer_count)) {
    if (!may_drain) {
      pool->Withdraw(buffer_count);
      break;
    }
    SEALPOINT_ASSIGN_OR_RETURN(may_drain, drain());
  }
  return {};
}

Status EngineParts::TakeBlobPermit(std::uint64_t part_size_bytes,
                                   const std::function<Result<bool>()>& drain) {
  const std::uint64_t part = BuffersOf(part_size_bytes);
  {
    const std::lock_guard lock(mutex_);
    if (held_buffers_ + part_buffers_ + part + open_blobs_ + 1 >= pool->buffer_count()) {
      return TooSmallFor(part_size_bytes);
    }
    ++open_blobs_;
    part_buffers_ += part;
  }
  Status status = part > 0 ? WithdrawPart(part, drain) : Status();
  if (status.ok()) return status;
  const std::lock_guard lock(mutex_);
  --open_blobs_;
  part_buffers_ -= part;
  return status;
}

void EngineParts::ReturnBlobPermit(std::uint64_t part_size_bytes) {
  const std::lock_guard lock(mutex_);
  --open_blobs_;
  part_buffers_ -= BuffersOf(part_size_bytes);
  pool->ReturnWithdrawn(BuffersOf(part_size_bytes));
}

bool EngineParts::TryReserve(std::uint64_t count) {
  const std::uint64_t buffer_count = pool->buffer_count();
  const std::lock_guard lock(mutex_);
  // No overflow: these count buffers of some KiB each.
  if (held_buffers_ + part_buffers_ + open_blobs_ + 1 + count >= buffer_count) return false;
  held_buffers_ += count;
  return true;
}

void EngineParts::ConvertReservation(std::uint64_t count, std::uint64_t blob_count,
                                     std::uint64_t part_size_bytes) {
  const std::uint64_t parts = blob_count * BuffersOf(part_size_bytes);
  {
    const std::lock_guard lock(mutex_);
    held_buffers_ -= count;
    open_blobs_ += blob_count;
    part_buffers_ += parts;
  }
  if (parts > 0) pool->Withdraw(parts);
}

bool EngineParts::TryTake(std::uint64_t bytes) {
  const std::uint64_t part = BuffersOf(bytes);
  const std::uint64_t staging = 2 * static_cast<std::uint64_t>(options.io_thread_count) + 2;
  const std::lock_guard lock(mutex_);
  const std::uint64_t used = held_buffers_ + part_buffers_ + extra_buffers_ + open_blobs_ + staging;
  if (used + part >= pool->buffer_count() || !pool->TryWithdraw(part)) return false;
  extra_buffers_ += part;
  return true;
}

void EngineParts::Give(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  extra_buffers_ -= BuffersOf(bytes);
  pool->ReturnWithdrawn(BuffersOf(bytes));
}

void EngineParts::MapInBackground(std::uint64_t size_bytes) {
  // Buffers for the ends of blobs, and one that is being written.
  constexpr std::uint64_t kFurtherBuffers = 4;
  const std::uint64_t count = BuffersOf(size_bytes) + kFurtherBuffers;
  const std::lock_guard lock(mapper_mutex_);
  mapper_ = {};  // waits for at most one buffer
  mapper_ = std::jthread([this, count](const std::stop_token& stop) {
    [[maybe_unused]] const Status status = pool->Reserve(count, stop);
  });
}

}  // namespace internal::pipeline

internal::pipeline::EngineParts& InternalAccess::PartsOf(const Engine& engine) {
  return *engine.parts_;
}

namespace {

// Checks the options and chooses the numbers of threads.
Status Complete(EngineOptions& options) {
  const std::uint64_t buffer = options.staging_buffer_size_bytes;
  SEALPOINT_RETURN_IF_ERROR(
      internal::pipeline::CheckThreads("io_thread_count", options.io_thread_count));
  SEALPOINT_RETURN_IF_ERROR(
      internal::pipeline::CheckThreads("snapshot_thread_count", options.snapshot_thread_count));
  options.io_thread_count = internal::pipeline::ChosenThreads(options.io_thread_count, 1);
  options.snapshot_thread_count =
      internal::pipeline::ChosenThreads(options.snapshot_thread_count, 2);
  if (buffer == 0 || buffer % kDirectIoAlignmentBytes != 0) {
    return internal::InvalidArgument("staging_buffer_size_bytes is ", buffer,
                                     ", expected a positive multiple of ", kDirectIoAlignmentBytes);
  }
  if (options.memory_budget_bytes / 2 < buffer) {
    return internal::InvalidArgument("memory_budget_bytes is ", options.memory_budget_bytes,
                                     ", expected at least two staging buffers of ", buffer);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Create(EngineOptions options) {
  SEALPOINT_RETURN_IF_ERROR(Complete(options));
  auto parts = std::make_unique<Parts>();
  SEALPOINT_ASSIGN_OR_RETURN(
      parts->pool, internal::device::StagingPool::Create(options.memory_budget_bytes,
                                                         options.staging_buffer_size_bytes));
  parts->io = std::make_unique<internal::pipeline::ThreadPool>(options.io_thread_count);
  parts->storage = options.storage ? options.storage : DefaultStorage();
  parts->device = internal::device::CudaRuntime();
  parts->owner_pid = getpid();
  parts->options = std::move(options);
  return std::unique_ptr<Engine>(new Engine(std::move(parts)));
}

Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() {
  // A forked child has no threads to join, and joining would block for ever. What the engine owns
  // in the child is left to the system.
  if (parts_->CheckUsable().ok()) return;
  parts_.release();  // NOLINT(bugprone-unused-return-value): leaving it is the point
}

Status Engine::MapMemory() { return parts_->pool->Reserve(parts_->pool->buffer_count()); }

Status Engine::MapMemoryInBackground(std::uint64_t size_bytes) {
  SEALPOINT_RETURN_IF_ERROR(parts_->CheckUsable());
  parts_->MapInBackground(std::min(size_bytes, parts_->options.memory_budget_bytes));
  return {};
}

Storage& Engine::storage() const { return *parts_->storage; }
const EngineOptions& Engine::options() const { return parts_->options; }

EngineStats Engine::stats() const {
  const internal::device::StagingPool& pool = *parts_->pool;
  return {pool.mapping_count(), pool.mapped_bytes(), pool.pinned_bytes()};
}

}  // namespace sealpoint
