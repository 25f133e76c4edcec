// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ENGINE_H_
#define SEALPOINT_ENGINE_H_

#include <cstdint>
#include <memory>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"
#include "sealpoint/threads.h"

namespace sealpoint {

class InternalAccess;  // internal to the library

struct EngineOptions {
  // Staging memory shared by all saves of this engine, rounded down to whole buffers. At least two
  // buffers, and one more than the number of blobs written simultaneously (one per writer and
  // group). More than 2 x io_thread_count + 2 further buffers bring no gain. Each blob in an object
  // store needs one part of its upload (32 MiB, S3Options::part_size_bytes); otherwise the first
  // Add returns InvalidArgument. The remaining memory holds further parts, which are sent
  // concurrently.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  // Size of one staging buffer and of one write; a positive multiple of 4096. From 1 MiB the rate
  // is within a few percent of the maximum; larger sizes than 4 MiB gain nothing.
  std::uint64_t staging_buffer_size_bytes = 4 * kMiB;
  // Threads that write while the caller's thread copies and hashes. kThreadsAuto: 1.
  int io_thread_count = kThreadsAuto;
  // Threads, including the caller's, that copy large host memory in SaveAsync if the memory budget
  // holds all of it. They exist only during the call. kThreadsAuto: 2.
  int snapshot_thread_count = kThreadsAuto;
  // Bypass the page cache when writing blobs, if the file system supports it. Otherwise (for
  // example on a RAM disk) host memory from 1 MiB is written in blocks of 128 KiB and needs no
  // staging memory.
  bool direct_io = true;
  // DefaultStorage() if null.
  std::shared_ptr<Storage> storage{};
};

struct EngineStats {
  std::uint64_t mapping_count = 0;  // memory mappings made for staging since the engine was created
  std::uint64_t mapped_bytes = 0;
  // Staging memory locked for copies from and to devices. This is all staging memory once a device
  // was used, and less if the system refused; copies are then slower.
  std::uint64_t pinned_bytes = 0;
};

// Resources shared by saves: staging memory, threads, storage. Create one per process and keep it,
// so that the second save allocates nothing. It must outlive all its writers and savers. Not usable
// in a child after fork (InvalidArgument); the child creates its own. Thread safety: all functions.
class SEALPOINT_EXPORT Engine {
 public:
  // Allocates no large memory and starts no thread before the first save. Errors: InvalidArgument
  // (an option below its minimum; the message has both values).
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Maps and touches all of memory_budget_bytes, so that the first save is as fast as later ones.
  // By default saves map memory on first use. Errors: Io (out of memory), InvalidArgument (after
  // fork).
  Status MapMemory();

  Storage& storage() const;
  const EngineOptions& options() const;
  EngineStats stats() const;

 private:
  friend class InternalAccess;
  struct Parts;
  explicit Engine(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace sealpoint

#endif  // SEALPOINT_ENGINE_H_
