// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_READERS_LOAD_DEVICE_READER_H_
#define SEALPOINT_READERS_LOAD_DEVICE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "readers/load/chunk_reader.h"
#include "readers/load/copies_to_devices.h"
#include "readers/load/delivery.h"
#include "readers/load/direct_read.h"

namespace sealpoint::internal {

// How plans with destinations in device memory use the budget: each thread has so many windows, for
// one range each with the digests of what is checked on the device, and as many staging buffers.
struct DeviceStaging {
  int threads = 1;
  std::size_t window_count = 1;
  std::uint64_t window_bytes = 0;
  std::uint64_t digest_bytes = 0;
  std::uint64_t buffer_bytes = 0;

  // More threads come before more windows; with three windows reading does not wait for copying,
  // nor copying for reading.
  static DeviceStaging Divide(const ReadPlanData& plan, int threads,
                              std::uint64_t memory_budget_bytes, bool with_digests);
  std::uint64_t bytes_per_window() const { return window_bytes + digest_bytes + buffer_bytes; }
  std::uint64_t thread_bytes() const { return window_count * bytes_per_window(); }
};

// One thread of a plan with destinations in device memory: reads and verifies a range in a window
// while the copies out of the windows before it are under way. Destruction waits until nothing of
// it runs any more. Errors: those of ChunkReader and DeviceFile, Device.
class DeviceReader {
 public:
  static Result<std::unique_ptr<DeviceReader>> Open(const PlanSource& source,
                                                    const DeviceStaging& staging,
                                                    bool verify_on_device);

  // Before the first range: thread_bytes() of the pool, which outlive the reader.
  void UseMemory(MutableByteSpan memory);
  // Before the first range: what devices can read, they read by themselves. The staging must be one
  // with digests, and `files` outlive the reader.
  void UseDirectFiles(DirectFiles& files) { direct_files_ = &files; }
  Status ReadRange(const PlanRange& range);
  // Waits until all has arrived, and checks what was to be verified on devices.
  Status Finish();
  // What was verified and read directly so far.
  const DeviceBytes& bytes() const { return bytes_; }
  // For ranges that are read elsewhere.
  ChunkReader& chunk_reader() { return reader_; }

 private:
  struct Window {
    MutableByteSpan memory{};
    std::span<Digest> digests{};
    DeviceCopies::Fence fence{};
    const PlanRange* range = nullptr;
    bool is_direct = false;                   // not read by the host
    std::vector<const PlanChunk*> checked{};  // a digest each
  };
  // Chunks that lie back to back in device memory, of which digests will be queued.
  struct Series {
    int device = kHostDevice;
    std::uint32_t name = 0;
    DeviceChunks chunks{};
    std::size_t first_digest = 0;
  };

  DeviceReader(const PlanSource& source, const DeviceStaging& staging, bool verify_on_device,
               std::unique_ptr<CopiesToDevices> copies);
  Result<bool> ReadDirectly(const PlanRange& range);
  Status ReadOnHost(Window& window);
  Status Complete(Window& window);
  Status CheckFile(const Window& window);
  Status AddChecks(Window& window, const PlanChunk& chunk);
  Status QueueSeries(const Window& window);

  const PlanSource& source_;
  const DeviceStaging staging_;
  const bool verify_on_device_;
  ChunkReader reader_;
  std::vector<Window> windows_;
  std::size_t next_window_ = 0;
  Series series_;
  DeviceBytes bytes_;
  DirectFiles* direct_files_ = nullptr;
  bool callers_are_done_ = false;  // with what was on their streams
  std::unique_ptr<CopiesToDevices> copies_;
};

}  // namespace sealpoint::internal

#endif  // SEALPOINT_READERS_LOAD_DEVICE_READER_H_
