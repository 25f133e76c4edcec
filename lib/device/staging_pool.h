// SPDX-License-Identifier: Apache-2.0
#ifndef SEALPOINT_LIB_DEVICE_STAGING_POOL_H_
#define SEALPOINT_LIB_DEVICE_STAGING_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>

#include "lib/device/device_runtime.h"
#include "sealpoint/bytes.h"
#include "sealpoint/status.h"

namespace sealpoint::internal::device {

class StagingPool;

// A mapping of a pool.
struct StagingMemory {
  MutableByteSpan bytes{};
  bool is_pinned = false;
};

// A buffer of a pool; goes back to it when destroyed. Movable; empty after a move.
class StagingBuffer {
 public:
  StagingBuffer() = default;
  ~StagingBuffer();
  StagingBuffer(StagingBuffer&& other) noexcept;
  StagingBuffer& operator=(StagingBuffer&& other) noexcept;

  MutableByteSpan bytes() const { return memory_.bytes; }
  bool empty() const { return pool_ == nullptr; }
  bool is_pinned() const { return memory_.is_pinned; }

 private:
  friend class StagingPool;
  StagingBuffer(StagingPool* pool, StagingMemory memory, bool is_scratch)
      : pool_(pool), memory_(memory), is_scratch_(is_scratch) {}

  StagingPool* pool_ = nullptr;
  StagingMemory memory_;
  bool is_scratch_ = false;
};

// Bounded pool of equal, page-aligned buffers for direct I/O. Memory comes from anonymous mappings,
// with huge pages if available. It is touched once when it is mapped (a first touch costs more than
// the copy that follows) and kept until the process ends, so that later saves allocate nothing.
// Forked children do not inherit the mappings (MADV_DONTFORK), because copy-on-write during a
// direct write would corrupt it.
//
// Also lends scratch memory of arbitrary size (codec and read buffers), cached by size class
// (powers of two) within a second budget of the same size. A scratch request with a class above the
// budget is returned to the system afterwards; one larger than the budget is served alone.
//
// Once a device is used (PinWith), lent memory is pinned first: the buffers, and scratch memory
// that is kept. Memory that cannot be pinned is lent unpinned, and copies from and to it are
// slower.
//
// Waiting is not fair. A thread that holds a buffer while it waits for another of the same kind may
// deadlock: request all buffers before taking work, or hold none while waiting.
//
// Thread safety: all functions. After fork the child must not use the pool: Acquire and
// AcquireScratch return InvalidArgument there; destroying buffers and the pool does nothing.
class StagingPool {
 public:
  // `budget_bytes` is rounded down to whole buffers, at least two. `buffer_size_bytes` is a
  // multiple of 4096. Memory is mapped on first use.
  static Result<std::unique_ptr<StagingPool>> Create(std::uint64_t budget_bytes,
                                                     std::uint64_t buffer_size_bytes);
  ~StagingPool();  // Precondition: all buffers came back.

  // Waits until a buffer is free. Its content is unspecified. Errors: Io (no memory),
  // InvalidArgument (after fork).
  Result<StagingBuffer> Acquire();
  // The same without waiting: an empty one if none is free.
  Result<StagingBuffer> TryAcquire();
  // Maps buffers until `count` exist, at most as many as the budget allows, so that no later
  // Acquire has to. Stops early, without an error, once `stop` is requested. Errors: as Acquire.
  Status Reserve(std::uint64_t count, const std::stop_token& stop = {});
  // Removes `count` buffers from the pool, for memory used in their place, and unmaps any mapped
  // buffers above the rest. TryWithdraw returns false if too many are lent; Withdraw waits until
  // they are returned. Precondition: fewer than buffer_count() are withdrawn.
  bool TryWithdraw(std::uint64_t count);
  void Withdraw(std::uint64_t count);
  void ReturnWithdrawn(std::uint64_t count);
  // At least `size_bytes`, page-aligned. Waits while the scratch budget is used up by others.
  // Errors: as Acquire.
  Result<StagingBuffer> AcquireScratch(std::uint64_t size_bytes);

  // From now on memory is pinned before it is lent; buffers that Reserve finds or makes at once.
  // After a failure no more is pinned. Only the first call counts. Precondition: a queue of the
  // runtime was made (DeviceRuntime::Pin).
  void PinWith(std::shared_ptr<DeviceRuntime> device);
  // The failure, if memory could not be pinned.
  Status pin_failure() const;

  std::uint64_t buffer_size_bytes() const;
  std::uint64_t buffer_count() const;  // at most, made or not
  // Mappings made since creation, and bytes that are mapped now; for the test that a second save
  // makes none.
  std::uint64_t mapping_count() const;
  std::uint64_t mapped_bytes() const;
  std::uint64_t pinned_bytes() const;

 private:
  friend class StagingBuffer;
  struct State;
  explicit StagingPool(std::unique_ptr<State> state);
  // With the lock held. Precondition: one is free, or may be made.
  Result<StagingBuffer> Lend(std::unique_lock<std::mutex>& lock);
  void Release(StagingMemory memory, bool is_scratch);

  std::unique_ptr<State> state_;
};

}  // namespace sealpoint::internal::device

#endif  // SEALPOINT_LIB_DEVICE_STAGING_POOL_H_
