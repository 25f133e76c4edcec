// SPDX-License-Identifier: Apache-2.0
#include "tests/support/process/allocation_watch.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

namespace {

std::atomic<std::int64_t> g_live_bytes{0};
std::atomic<std::int64_t> g_peak_bytes{0};
std::atomic<std::int64_t> g_largest_bytes{0};
std::int64_t g_begin_bytes = 0;

void RaiseTo(std::atomic<std::int64_t>& maximum, std::int64_t value) {
  std::int64_t known = maximum.load(std::memory_order_relaxed);
  while (known < value && !maximum.compare_exchange_weak(known, value)) {
  }
}

[[maybe_unused]] void Gain(std::size_t size) {
  const auto bytes = static_cast<std::int64_t>(size);
  RaiseTo(g_peak_bytes, g_live_bytes.fetch_add(bytes) + bytes);
  RaiseTo(g_largest_bytes, bytes);
}

[[maybe_unused]] void Give(std::size_t size) {
  g_live_bytes.fetch_sub(static_cast<std::int64_t>(size));
}

}  // namespace

namespace sealpoint::testing {

void BeginAllocationWatch() {
  g_begin_bytes = g_live_bytes.load();
  g_peak_bytes = g_begin_bytes;
  g_largest_bytes = 0;
}

AllocationPeak EndAllocationWatch() {
  return {.live_bytes = static_cast<std::uint64_t>(g_peak_bytes.load() - g_begin_bytes),
          .largest_bytes = static_cast<std::uint64_t>(g_largest_bytes.load())};
}

#if defined(SEALPOINT_TEST_SANITIZED)
bool CanWatchAllocations() { return false; }
#else
bool CanWatchAllocations() { return true; }
#endif

}  // namespace sealpoint::testing

#if !defined(SEALPOINT_TEST_SANITIZED)

// The names under which glibc offers its own functions to programs that replace them.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);

void* malloc(std::size_t size) {
  void* const memory = __libc_malloc(size);
  if (memory != nullptr) Gain(malloc_usable_size(memory));
  return memory;
}
void* calloc(std::size_t count, std::size_t size) {
  void* const memory = __libc_calloc(count, size);
  if (memory != nullptr) Gain(malloc_usable_size(memory));
  return memory;
}
void* realloc(void* memory, std::size_t size) {
  const std::size_t before = memory != nullptr ? malloc_usable_size(memory) : 0;
  void* const moved = __libc_realloc(memory, size);
  if (moved != nullptr || size == 0) Give(before);
  if (moved != nullptr) Gain(malloc_usable_size(moved));
  return moved;
}
void* memalign(std::size_t alignment, std::size_t size) {
  void* const memory = __libc_memalign(alignment, size);
  if (memory != nullptr) Gain(malloc_usable_size(memory));
  return memory;
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  void* const made = memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *memory = made;
  return 0;
}
void free(void* memory) {
  if (memory == nullptr) return;
  Give(malloc_usable_size(memory));
  __libc_free(memory);
}

void* mmap(void* address, std::size_t size, int protection, int flags, int file, off_t offset) {
  const long result = syscall(SYS_mmap, address, size, protection, flags, file, offset);
  if (result != -1 && (flags & MAP_ANONYMOUS) != 0) Gain(size);
  return reinterpret_cast<void*>(result);
}
int munmap(void* address, std::size_t size) {
  const int result = static_cast<int>(syscall(SYS_munmap, address, size));
  if (result == 0) Give(size);
  return result;
}
}  // extern "C"

#endif
