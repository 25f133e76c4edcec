// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_ENGINE_PARTS_H_
#define SEALPOINT_LIB_PIPELINE_ENGINE_PARTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lib/codec/chunk_codec.h"
#include "lib/device/device_runtime.h"
#include "lib/device/queue_pool.h"
#include "lib/device/staging_pool.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/engine.h"

namespace sealpoint::internal::pipeline {

// Idle codecs. The contexts of a codec are large, so they are kept for the next save. Thread
// safety: all functions.
class CodecPool {
 public:
  std::unique_ptr<codec::ChunkCodec> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<codec::ChunkCodec>();
    std::unique_ptr<codec::ChunkCodec> codec = std::move(idle_.back());
    idle_.pop_back();
    return codec;
  }
  void Return(std::unique_ptr<codec::ChunkCodec> codec) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(codec));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<codec::ChunkCodec>> idle_;
};

// The members of an Engine, in order of construction: the pool outlives the threads, because their
// jobs hold its buffers. Parts of uploads are counted in the pool's budget. One part per blob is
// reserved; more are taken as long as staging keeps the memory it benefits from.
struct EngineParts : public PartBudget {
  EngineOptions options;
  std::shared_ptr<Storage> storage;
  // CudaRuntime(). Tests replace it before the first use.
  std::shared_ptr<device::DeviceRuntime> device;
  device::QueuePool queues;  // of `device`
  std::unique_ptr<device::StagingPool> pool;
  std::unique_ptr<ThreadPool> io;
  CodecPool codecs;
  int owner_pid = 0;

  // InvalidArgument in a child after fork, which has neither the threads nor the staging memory.
  Status CheckUsable() const;

  // Counts a blob that is being written. Each blob may hold one partly filled staging buffer while
  // another blob waits for one. There must therefore be at least one more buffer than open blobs:
  // one buffer is then always free or being written, and no writer waits forever. If the blob is
  // uploaded in parts of `part_size_bytes` (else 0), one part is reserved as well: waits for lent
  // buffers after `drain` (FileStream::SetDrain) has nothing left. InvalidArgument if the budget is
  // too small. After success ReturnBlobPermit must follow.
  Status TakeBlobPermit(std::uint64_t part_size_bytes, const std::function<Result<bool>()>& drain);
  void ReturnBlobPermit(std::uint64_t part_size_bytes);

  // Reserves `count` buffers for a save that fills them before it can write any, if enough remain
  // for the other saves to proceed; otherwise returns false. After success ConvertReservation must
  // follow, once the blobs of that save are written normally: it returns the buffers and takes
  // slots for the blobs in one step, so that no other save can take the space in between. If blobs
  // are uploaded, `count` includes the space of their parts (BuffersOf), and the call waits for it.
  bool TryReserve(std::uint64_t count);
  void ConvertReservation(std::uint64_t count, std::uint64_t blob_count,
                          std::uint64_t part_size_bytes = 0);
  // As many buffers as have room for `bytes`.
  std::uint64_t BuffersOf(std::uint64_t bytes) const;

  // Maps buffers for `size_bytes` on a thread of its own, which replaces an earlier one. Its
  // failure is not reported: a save that needs the memory reports it.
  void MapInBackground(std::uint64_t size_bytes);

  // Parts beyond the one that is set apart for each blob.
  bool TryTake(std::uint64_t bytes) override;
  void Give(std::uint64_t bytes) override;

 private:
  Status WithdrawPart(std::uint64_t buffer_count, const std::function<Result<bool>()>& drain);
  Status TooSmallFor(std::uint64_t part_size_bytes) const;

  std::mutex mutex_;
  std::uint64_t open_blobs_ = 0;
  std::uint64_t held_buffers_ = 0;
  std::uint64_t part_buffers_ = 0;   // in buffers: set apart for parts of open blobs
  std::uint64_t extra_buffers_ = 0;  // taken for further parts

  std::mutex mapper_mutex_;  // held while a thread is replaced
  std::jthread mapper_;      // the last member: it uses the pool
};

}  // namespace sealpoint::internal::pipeline

namespace sealpoint {
struct Engine::Parts final : internal::pipeline::EngineParts {};
}  // namespace sealpoint

#endif  // SEALPOINT_LIB_PIPELINE_ENGINE_PARTS_H_
