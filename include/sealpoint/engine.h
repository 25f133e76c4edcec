// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_ENGINE_H_
#define SEALPOINT_ENGINE_H_

#include <cstdint>
#include <memory>

#include "sealpoint/bytes.h"
#include "sealpoint/export.h"
#include "sealpoint/limits.h"
#include "sealpoint/status.h"
#include "sealpoint/storage.h"

namespace sealpoint {

class InternalAccess;  // internal to the library

struct EngineOptions {
  // Staging memory that all saves of this engine share, rounded down to whole buffers. The minimum
  // is one buffer more than the number of blobs that are written simultaneously (one blob per
  // writer and group), and at least two buffers. On a file system, writes do not become faster with
  // more than 2 * io_thread_count + 2 buffers above this minimum. In an object store, each blob
  // also needs memory for one part of its upload (32 MiB, S3Options::part_size_bytes). If this
  // memory is not available, the first Add returns InvalidArgument. Any additional memory is used
  // to send further parts concurrently.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  // Size of one staging buffer and of one write; a positive multiple of 4096 bytes. With 1 MiB or
  // more, the write rate is within a few percent of its maximum; sizes above 4 MiB do not increase
  // the rate.
  std::uint64_t staging_buffer_size_bytes = 4 * kMiB;
  // Number of threads that write while the caller's thread copies and hashes. kThreadsAuto: 1.
  int io_thread_count = kThreadsAuto;
  // Number of threads, including the caller's thread, that copy large host memory in SaveAsync.
  // Additional threads are used only if all data of the save fits in the memory budget. These
  // threads exist only during the call. kThreadsAuto: 2.
  int snapshot_thread_count = kThreadsAuto;
  // Write blobs without the page cache, if the file system supports direct I/O. RAM disks, for
  // example, do not support direct I/O. Without direct I/O, host memory of 1 MiB or more is written
  // in blocks of 128 KiB and needs no staging memory.
  bool direct_io = true;
  // DefaultStorage() if null.
  std::shared_ptr<Storage> storage{};
};

struct EngineStats {
  // Number of memory mappings made for staging since the engine was created.
  std::uint64_t mapping_count = 0;
  std::uint64_t mapped_bytes = 0;
  // Staging memory that is locked for copies from and to devices. After the first use of a device,
  // all staging memory is locked. If the system refuses to lock some of the memory, the value is
  // smaller and copies are slower.
  std::uint64_t pinned_bytes = 0;
};

// Resources that saves share: staging memory, threads, storage. Create one engine per process and
// keep it: later saves then reuse the memory of the first save. The engine must outlive all its
// writers and savers. After a fork, the child cannot use the parent's engine (InvalidArgument) and
// must create its own. Thread safety: all functions may be called from any thread.
class SEALPOINT_EXPORT Engine {
 public:
  // Creates an engine. The engine allocates no large memory and starts no thread before the first
  // save. Errors: InvalidArgument (the value of an option is not allowed; the message states the
  // value and the allowed values).
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Maps and touches all of memory_budget_bytes, so that the first save is as fast as later saves.
  // Without this call, saves map memory when they first use it. Errors: Io (out of memory),
  // InvalidArgument (in a child after fork).
  Status MapMemory();
  // Starts a thread of the engine that maps memory for a save of `size_bytes` bytes of tensors, and
  // returns immediately. The thread maps at most memory_budget_bytes. Call this function some time
  // before the first SaveAsync, for example after the model and the optimizer are created.
  // SaveAsync then does not wait for the memory. A later call replaces an earlier call; mapped
  // memory stays mapped. Errors: InvalidArgument (in a child after fork).
  Status MapMemoryInBackground(std::uint64_t size_bytes);

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
