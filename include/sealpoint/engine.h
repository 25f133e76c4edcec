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

class InternalAccess;  // the library's own modules

struct EngineOptions {
  // Staging memory that all saves of this engine share, rounded down to whole buffers. At least two
  // buffers, and one more than blobs are written at the same time (one per writer and group); more
  // than 2 x io_thread_count + 2 on top of that gain nothing. Blobs in an object store need a part
  // of their upload each (32 MiB, S3Options::part_size_bytes), else the first Add is
  // InvalidArgument; what is left holds further parts, all of which are sent at the same time.
  std::uint64_t memory_budget_bytes = 256 * kMiB;
  // Size of one staging buffer and of one write; a positive multiple of 4096. From 1 MiB on within
  // a few per cent of the best rate; 4 MiB is the knee.
  std::uint64_t staging_buffer_size_bytes = 4 * kMiB;
  // Threads that write while the caller's thread copies and hashes; 1 to kThreadsMax.
  int io_thread_count = 1;
  // Threads, the caller's among them, that copy large host memory in SaveAsync if the budget holds
  // all of it; 1 to kThreadsMax. They exist for the time of the call.
  int snapshot_thread_count = 2;
  // Write blobs past the page cache if the file system can. If not (a RAM disk can not), host
  // memory from 1 MiB on is written through blocks of 128 KiB and needs no staging memory.
  bool direct_io = true;
  // DefaultStorage() if null.
  std::shared_ptr<Storage> storage{};
};

struct EngineStats {
  std::uint64_t mapping_count = 0;  // memory mappings made for staging since the engine was made
  std::uint64_t mapped_bytes = 0;
  // How many of these are locked in memory for copies from and to devices: all once a device was
  // used, fewer if the system refused, and copies are then slower.
  std::uint64_t pinned_bytes = 0;
};

// What saves have in common and keep: staging pool, threads, storage. Make one per process and keep
// it, so that the second save allocates nothing. It must outlive all writers and savers that use
// it. Not usable in a child after fork (the calls fail with InvalidArgument); the child makes its
// own. Thread safety: all functions.
class SEALPOINT_EXPORT Engine {
 public:
  // Allocates nothing large and starts no thread before the first save.
  // Errors: InvalidArgument (an option below its minimum; the message has both).
  static Result<std::unique_ptr<Engine>> Create(EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Maps and touches all of memory_budget_bytes now, so that the first save takes no longer than
  // the later ones; saves otherwise map what they use when they first use it. Errors: Io (no
  // memory), InvalidArgument (after fork).
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
