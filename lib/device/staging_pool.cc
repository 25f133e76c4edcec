// SPDX-License-Identifier: Apache-2.0
#include "lib/device/staging_pool.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/host_mapping.h"

namespace sealpoint::internal {

StagingBuffer::~StagingBuffer() {
  if (pool_ != nullptr) pool_->Release(bytes_, is_scratch_);
}

StagingBuffer::StagingBuffer(StagingBuffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      bytes_(std::exchange(other.bytes_, {})),
      is_scratch_(other.is_scratch_) {}

StagingBuffer& StagingBuffer::operator=(StagingBuffer&& other) noexcept {
  StagingBuffer old(std::move(other));
  std::swap(pool_, old.pool_);
  std::swap(bytes_, old.bytes_);
  std::swap(is_scratch_, old.is_scratch_);
  return *this;
}

// Invariants, under `mutex`: buffers_made <= buffers_max; scratch_mapped = scratch_lent + bytes in
// scratch_free, and at most scratch_budget unless a single larger piece is lent.
struct StagingPool::State {
  std::uint64_t buffer_size = 0;
  std::uint64_t buffers_max = 0;
  std::uint64_t scratch_budget = 0;
  pid_t owner = 0;

  std::mutex mutex;
  std::condition_variable buffer_returned;
  std::condition_variable scratch_returned;
  std::vector<MutableByteSpan> buffers_free;
  std::uint64_t buffers_made = 0;
  std::array<std::vector<MutableByteSpan>, 64> scratch_free;  // by log2 of the pages, plus 1
  std::uint64_t scratch_mapped = 0;
  std::uint64_t scratch_lent = 0;
  std::uint64_t mapping_count = 0;
  std::uint64_t mapped_bytes = 0;

  // The pool's memory and threads do not exist in a forked child, and its mutex may be held there
  // for ever. getpid is a system call, but a buffer is megabytes.
  bool InForkedChild() const { return getpid() != owner; }
  Status CheckProcess() const {
    if (!InForkedChild()) return {};
    return InvalidArgument("the staging pool was made before fork and must not be used after it");
  }

  bool ScratchFits(std::uint64_t size) const {
    return scratch_lent == 0 || (size <= scratch_budget && scratch_lent <= scratch_budget - size);
  }
  // Only pieces of a whole class are kept: another would later be lent to who asks for more.
  bool IsKept(std::uint64_t size) const {
    return size <= scratch_budget && std::has_single_bit(size);
  }
  std::vector<MutableByteSpan>& ScratchClass(std::uint64_t size) {
    return scratch_free[static_cast<std::size_t>(std::bit_width(size / kPageBytes))];
  }
  std::vector<MutableByteSpan> EvictScratch(std::uint64_t size);
  void CountMapping(std::uint64_t size) {
    ++mapping_count;
    mapped_bytes += size;
  }
};

// Takes cached pieces out until `size` more bytes fit; the caller unmaps them without the lock.
// Precondition: ScratchFits(size).
std::vector<MutableByteSpan> StagingPool::State::EvictScratch(std::uint64_t size) {
  std::vector<MutableByteSpan> evicted;
  for (auto& pieces : scratch_free) {
    while (!pieces.empty() && (size > scratch_budget || scratch_mapped > scratch_budget - size)) {
      scratch_mapped -= pieces.back().size();
      mapped_bytes -= pieces.back().size();
      evicted.push_back(pieces.back());
      pieces.pop_back();
    }
  }
  return evicted;
}

Result<std::unique_ptr<StagingPool>> StagingPool::Create(std::uint64_t budget_bytes,
                                                         std::uint64_t buffer_size_bytes) {
  if (buffer_size_bytes == 0 || buffer_size_bytes % kPageBytes != 0) {
    return InvalidArgument("staging buffer size ", buffer_size_bytes, " is not a multiple of ",
                           kPageBytes);
  }
  const std::uint64_t count = std::max<std::uint64_t>(2, budget_bytes / buffer_size_bytes);
  const auto budget = CheckedMul(count, buffer_size_bytes);
  if (!budget) return InvalidArgument("staging buffer size ", buffer_size_bytes, " is too large");
  auto state = std::make_unique<State>();
  state->buffer_size = buffer_size_bytes;
  state->buffers_max = count;
  state->scratch_budget = *budget;
  state->owner = getpid();
  return std::unique_ptr<StagingPool>(new StagingPool(std::move(state)));
}

StagingPool::StagingPool(std::unique_ptr<State> state) : state_(std::move(state)) {}

StagingPool::~StagingPool() {
  // In a forked child the addresses may belong to somebody else by now.
  if (state_->InForkedChild()) return;
  SEALPOINT_CHECK(state_->buffers_free.size() == state_->buffers_made && state_->scratch_lent == 0);
  for (const MutableByteSpan bytes : state_->buffers_free) UnmapHostMemory(bytes);
  for (const auto& pieces : state_->scratch_free) {
    for (const MutableByteSpan bytes : pieces) UnmapHostMemory(bytes);
  }
}

Result<StagingBuffer> StagingPool::Acquire() {
  SEALPOINT_RETURN_IF_ERROR(state_->CheckProcess());
  std::unique_lock lock(state_->mutex);
  state_->buffer_returned.wait(lock, [this] {
    return !state_->buffers_free.empty() || state_->buffers_made < state_->buffers_max;
  });
  if (!state_->buffers_free.empty()) {
    const MutableByteSpan bytes = state_->buffers_free.back();
    state_->buffers_free.pop_back();
    return StagingBuffer(this, bytes, false);
  }
  ++state_->buffers_made;
  lock.unlock();  // mapping takes milliseconds
  auto mapped = MapHostMemory(state_->buffer_size);
  lock.lock();
  if (!mapped) {
    --state_->buffers_made;
    state_->buffer_returned.notify_one();  // who waits tries in its turn and learns the reason
    return std::move(mapped).error();
  }
  state_->CountMapping(state_->buffer_size);
  return StagingBuffer(this, *mapped, false);
}

Status StagingPool::Reserve(std::uint64_t count) {
  SEALPOINT_RETURN_IF_ERROR(state_->CheckProcess());
  std::unique_lock lock(state_->mutex);
  while (state_->buffers_made < std::min(count, state_->buffers_max)) {
    ++state_->buffers_made;
    lock.unlock();
    auto mapped = MapHostMemory(state_->buffer_size);
    lock.lock();
    if (!mapped) --state_->buffers_made;
    state_->buffer_returned.notify_one();  // there is a buffer more, or room for another try
    if (!mapped) return std::move(mapped).error();
    state_->CountMapping(state_->buffer_size);
    state_->buffers_free.push_back(*mapped);
  }
  return {};
}

Result<StagingBuffer> StagingPool::AcquireScratch(std::uint64_t size_bytes) {
  SEALPOINT_RETURN_IF_ERROR(state_->CheckProcess());
  if (size_bytes > std::numeric_limits<std::uint64_t>::max() / 2) {
    return MakeError(Code::kIo, "no memory for a scratch buffer of ", size_bytes, " bytes");
  }
  // A piece that will not be kept is not rounded up to its class.
  std::uint64_t size = std::bit_ceil(std::max(size_bytes, kPageBytes));
  if (size > state_->scratch_budget) size = AlignUp(size_bytes, kPageBytes);

  std::unique_lock lock(state_->mutex);
  auto& cached = state_->ScratchClass(size);
  const bool cacheable = state_->IsKept(size);
  state_->scratch_returned.wait(
      lock, [&] { return (cacheable && !cached.empty()) || state_->ScratchFits(size); });
  state_->scratch_lent += size;
  if (cacheable && !cached.empty()) {
    const MutableByteSpan bytes = cached.back();
    cached.pop_back();
    return StagingBuffer(this, bytes, true);
  }
  const auto evicted = state_->EvictScratch(size);
  state_->scratch_mapped += size;
  lock.unlock();
  for (const MutableByteSpan bytes : evicted) UnmapHostMemory(bytes);
  auto mapped = MapHostMemory(size);
  lock.lock();
  if (!mapped) {
    state_->scratch_lent -= size;
    state_->scratch_mapped -= size;
    state_->scratch_returned.notify_all();
    return std::move(mapped).error();
  }
  state_->CountMapping(size);
  return StagingBuffer(this, *mapped, true);
}

void StagingPool::Release(MutableByteSpan bytes, bool is_scratch) {
  if (state_->InForkedChild()) return;
  std::unique_lock lock(state_->mutex);
  if (!is_scratch) {
    state_->buffers_free.push_back(bytes);
    state_->buffer_returned.notify_one();
    return;
  }
  state_->scratch_lent -= bytes.size();
  if (state_->IsKept(bytes.size())) {
    state_->ScratchClass(bytes.size()).push_back(bytes);
  } else {
    state_->scratch_mapped -= bytes.size();
    state_->mapped_bytes -= bytes.size();
    UnmapHostMemory(bytes);
  }
  state_->scratch_returned.notify_all();  // waiters want different sizes
}

std::uint64_t StagingPool::buffer_size_bytes() const { return state_->buffer_size; }

std::uint64_t StagingPool::buffer_count() const { return state_->buffers_max; }

std::uint64_t StagingPool::mapping_count() const {
  const std::lock_guard lock(state_->mutex);
  return state_->mapping_count;
}

std::uint64_t StagingPool::mapped_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->mapped_bytes;
}

}  // namespace sealpoint::internal
