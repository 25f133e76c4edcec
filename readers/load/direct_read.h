// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_DIRECT_READ_H_
#define SEALPOINT_READERS_LOAD_DIRECT_READ_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "lib/container/blob_files.h"
#include "lib/device/device_runtime.h"
#include "readers/load/read_plan_data.h"

namespace sealpoint::internal {

// Chunks of a range that a device can read at once: back to back in its memory as in the file.
struct DirectRun {
  int device = 0;
  std::byte* to = nullptr;
  const PlanChunk* first = nullptr;
  std::uint64_t size_bytes = 0;
};

// All chunks of the range; none if one of them does not go, as it is stored, to contiguous memory
// of one device.
std::vector<DirectRun> DirectRunsOf(const ReadPlanData& plan, const PlanRange& range);

// The blobs of a plan as files that devices read. A blob that cannot be such a file is left to the
// host, whose own read reports the error if the file has one. Thread safety: all functions.
class DirectFiles {
 public:
  // The blobs of `files`, opened again for direct I/O. Borrows what `files` borrows.
  DirectFiles(const BlobFiles& files, DeviceRuntime& devices)
      : files_(files.InMode(IoMode::kDirect)), devices_(devices) {}

  // Null if the host must read the blob.
  std::shared_ptr<DeviceFile> Open(std::uint32_t blob);
  // Devices could not read it after all.
  void Refuse(std::uint32_t blob);

 private:
  struct Entry {
    std::uint32_t blob = 0;
    std::shared_ptr<const ReadableFile> file{};  // outlives what is made of its descriptor
    std::unique_ptr<DeviceFile> device_file{};   // null if devices cannot read it
  };
  std::shared_ptr<Entry> Make(std::uint32_t blob);

  BlobFiles files_;
  DeviceRuntime& devices_;
  std::mutex mutex_;
  std::deque<std::shared_ptr<Entry>> open_;  // guarded; oldest first
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_DIRECT_READ_H_
