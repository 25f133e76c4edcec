// SPDX-License-Identifier: Apache-2.0
#include "sealpoint/engine.h"

#include <unistd.h>

#include "lib/base/errors.h"
#include "lib/base/internal_access.h"
#include "lib/base/macros.h"
#include "lib/device/cuda_runtime.h"
#include "lib/pipeline/engine_parts.h"
#include "lib/pipeline/thread_pool.h"

namespace sealpoint {
namespace internal {

Status EngineParts::CheckUsable() const {
  if (getpid() == owner_pid) return {};
  return InvalidArgument("engine cannot be used in a child after fork; create one there");
}

Status EngineParts::TakeBlobPermit() {
  const std::uint64_t buffer_count = pool->buffer_count();
  const std::lock_guard lock(mutex_);
  if (held_buffers_ + open_blobs_ + 1 < buffer_count) {
    ++open_blobs_;
    return {};
  }
  return InvalidArgument("memory budget has ", buffer_count, " staging buffers, of which ",
                         held_buffers_, " are reserved for saves in the background: too few for ",
                         open_blobs_ + 1, " blobs written at the same time");
}

void EngineParts::ReturnBlobPermit() {
  const std::lock_guard lock(mutex_);
  --open_blobs_;
}

bool EngineParts::TryReserve(std::uint64_t count) {
  const std::uint64_t buffer_count = pool->buffer_count();
  const std::lock_guard lock(mutex_);
  // No overflow: these count buffers of some KiB each.
  if (held_buffers_ + open_blobs_ + 1 + count >= buffer_count) return false;
  held_buffers_ += count;
  return true;
}

void EngineParts::ConvertReservation(std::uint64_t count, std::uint64_t blob_count) {
  const std::lock_guard lock(mutex_);
  held_buffers_ -= count;
  open_blobs_ += blob_count;
}

}  // namespace internal

internal::EngineParts& InternalAccess::PartsOf(const Engine& engine) { return *engine.parts_; }

namespace {

Status CheckOptions(const EngineOptions& options) {
  const std::uint64_t buffer = options.staging_buffer_size_bytes;
  SEALPOINT_RETURN_IF_ERROR(internal::CheckThreads("io_thread_count", options.io_thread_count));
  SEALPOINT_RETURN_IF_ERROR(
      internal::CheckThreads("snapshot_thread_count", options.snapshot_thread_count));
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
  SEALPOINT_RETURN_IF_ERROR(CheckOptions(options));
  auto parts = std::make_unique<Parts>();
  SEALPOINT_ASSIGN_OR_RETURN(parts->pool,
                             internal::StagingPool::Create(options.memory_budget_bytes,
                                                           options.staging_buffer_size_bytes));
  parts->io = std::make_unique<internal::ThreadPool>(options.io_thread_count);
  parts->storage = options.storage ? options.storage : DefaultStorage();
  parts->device = internal::CudaRuntime();
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

Storage& Engine::storage() const { return *parts_->storage; }
const EngineOptions& Engine::options() const { return parts_->options; }

EngineStats Engine::stats() const {
  const internal::StagingPool& pool = *parts_->pool;
  return {pool.mapping_count(), pool.mapped_bytes(), pool.pinned_bytes()};
}

}  // namespace sealpoint
