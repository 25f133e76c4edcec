// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_PIPELINE_ENGINE_PARTS_H_
#define SEALPOINT_LIB_PIPELINE_ENGINE_PARTS_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "lib/device/device_runtime.h"
#include "lib/device/staging_pool.h"
#include "lib/pipeline/codec_pool.h"
#include "lib/pipeline/queue_pool.h"
#include "lib/pipeline/thread_pool.h"
#include "sealpoint/engine.h"

namespace sealpoint::internal {

// What an Engine holds. The pool outlives the threads, whose jobs hold its buffers.
struct EngineParts {
  EngineOptions options;
  std::shared_ptr<Storage> storage;
  // CudaRuntime(); tests put a stand-in here before the first use.
  std::shared_ptr<DeviceRuntime> device;
  QueuePool queues;  // of `device`
  std::unique_ptr<StagingPool> pool;
  std::unique_ptr<ThreadPool> io;
  CodecPool codecs;
  int owner_pid = 0;

  // InvalidArgument in a child after fork: threads and staging memory stayed with the parent.
  Status CheckUsable() const;

  // Counts a blob that is being written. Each may hold one staging buffer that is partly filled
  // while another waits for one, so at least one buffer more than open blobs must exist: then one
  // is always free or on its way back, and no writer waits for another for ever. InvalidArgument
  // where the budget has too few; with success ReturnBlobSlot must follow.
  Status TakeBlobSlot();
  void ReturnBlobSlot();

  // Sets `count` buffers apart for a save that fills them before it can write any, and keeps enough
  // for the others to go on. False where the budget does not allow for it. With success
  // ConvertReservation must follow, once that save's blobs are written like others': it returns the
  // buffers and takes slots for the blobs.
  bool TryReserve(std::uint64_t count);
  void ConvertReservation(std::uint64_t count, std::uint64_t blob_count);

 private:
  std::mutex mutex_;
  std::uint64_t open_blobs_ = 0;
  std::uint64_t held_buffers_ = 0;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_LIB_PIPELINE_ENGINE_PARTS_H_
