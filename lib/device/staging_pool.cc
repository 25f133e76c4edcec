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

namespace sealpoint::internal::device {

StagingBuffer::~StagingBuffer() {
  if (pool_ != nullptr) pool_->Release(memory_, is_scratch_);
}

StagingBuffer::StagingBuffer(StagingBuffer&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      memory_(std::exchange(other.memory_, {})),
      is_scratch_(other.is_scratch_) {}

StagingBuffer& StagingBuffer::operator=(StagingBuffer&& other) noexcept {
  StagingBuffer old(std::move(other));
  std::swap(pool_, old.pool_);
  std::swap(memory_, old.memory_);
  std::swap(is_scratch_, old.is_scratch_);
  return *this;
}

// Invariants, under `mutex`: buffers_made + buffers_withdrawn <= buffers_max; scratch_mapped =
// scratch_lent + bytes in scratch_free, and at most scratch_budget unless a single larger one is
// lent.
struct StagingPool::State {
  std::uint64_t buffer_size = 0;
  std::uint64_t buffers_max = 0;
  std::uint64_t scratch_budget = 0;
  pid_t owner = 0;

  std::mutex mutex;
  std::condition_variable buffer_returned;
  std::condition_variable scratch_returned;
  std::condition_variable room_returned;  // for Withdraw
  std::vector<StagingMemory> buffers_free;
  std::uint64_t buffers_made = 0;
  std::uint64_t buffers_withdrawn = 0;
  std::array<std::vector<StagingMemory>, 64> scratch_free;  // by log2 of the pages, plus 1
  std::uint64_t scratch_mapped = 0;
  std::uint64_t scratch_lent = 0;
  std::uint64_t mapping_count = 0;
  std::uint64_t mapped_bytes = 0;
  std::uint64_t pinned_bytes = 0;
  std::shared_ptr<DeviceRuntime> device;  // null: nothing is pinned
  Status pin_failure;

  // The pool's memory and threads do not exist in a forked child, and its mutex may be held there
  // for ever. getpid is a system call, but a buffer is megabytes.
  bool InForkedChild() const { return getpid() != owner; }
  Status CheckProcess() const {
    if (!InForkedChild()) return {};
    return InvalidArgument("the staging pool was made before fork and must not be used after it");
  }

  bool HasFreeBuffer() const {
    return !buffers_free.empty() || buffers_made < buffers_max - buffers_withdrawn;
  }
  bool CanWithdraw(std::uint64_t count) const {
    return buffers_made - buffers_free.size() + buffers_withdrawn + count <= buffers_max;
  }
  void Withdraw(std::uint64_t count, std::unique_lock<std::mutex>& lock);
  bool ScratchFits(std::uint64_t size) const {
    return scratch_lent == 0 || (size <= scratch_budget && scratch_lent <= scratch_budget - size);
  }
  // Only memory of a whole class is kept: else it would later be lent for a larger request.
  bool IsKept(std::uint64_t size) const {
    return size <= scratch_budget && std::has_single_bit(size);
  }
  std::vector<StagingMemory>& ScratchClass(std::uint64_t size) {
    return scratch_free[static_cast<std::size_t>(std::bit_width(size / kPageBytes))];
  }
  std::vector<StagingMemory> EvictScratch(std::uint64_t size);
  bool WantsPin(const StagingMemory& memory) const {
    return device != nullptr && pin_failure.ok() && !memory.is_pinned;
  }
  void PinIfWanted(StagingMemory& memory, std::unique_lock<std::mutex>& lock);
  void PinFree(std::unique_lock<std::mutex>& lock);
  void Unmap(const StagingMemory& memory) const;
  void CountMapping(std::uint64_t size) {
    ++mapping_count;
    mapped_bytes += size;
  }
};

// Takes cached memory out until `size` more bytes fit; the caller unmaps them without the lock.
// Precondition: ScratchFits(size).
std::vector<StagingMemory> StagingPool::State::EvictScratch(std::uint64_t size) {
  std::vector<StagingMemory> evicted;
  for (auto& pieces : scratch_free) {
    while (!pieces.empty() && (size > scratch_budget || scratch_mapped > scratch_budget - size)) {
      const StagingMemory& piece = pieces.back();
      scratch_mapped -= piece.bytes.size();
      mapped_bytes -= piece.bytes.size();
      if (piece.is_pinned) pinned_bytes -= piece.bytes.size();
      evicted.push_back(piece);
      pieces.pop_back();
    }
  }
  return evicted;
}

// Precondition: CanWithdraw(count).
void StagingPool::State::Withdraw(std::uint64_t count, std::unique_lock<std::mutex>& lock) {
  buffers_withdrawn += count;
  std::vector<StagingMemory> evicted;
  for (; buffers_made + buffers_withdrawn > buffers_max; --buffers_made) {
    evicted.push_back(buffers_free.back());
    buffers_free.pop_back();
    mapped_bytes -= buffer_size;
    if (evicted.back().is_pinned) pinned_bytes -= buffer_size;
  }
  lock.unlock();
  for (const StagingMemory& buffer : evicted) Unmap(buffer);
}

// Without the lock, since pinning takes milliseconds; the memory belongs to the caller meanwhile.
void StagingPool::State::PinIfWanted(StagingMemory& memory, std::unique_lock<std::mutex>& lock) {
  if (!WantsPin(memory)) return;
  lock.unlock();
  Status status = device->Pin(memory.bytes);  // `device` is set once
  lock.lock();
  memory.is_pinned = status.ok();
  if (memory.is_pinned) {
    pinned_bytes += memory.bytes.size();
  } else {
    pin_failure = std::move(status);
  }
}

// Each buffer is as if lent while it is pinned.
void StagingPool::State::PinFree(std::unique_lock<std::mutex>& lock) {
  while (true) {
    const auto wanting = std::find_if(buffers_free.begin(), buffers_free.end(),
                                      [this](const StagingMemory& m) { return WantsPin(m); });
    if (wanting == buffers_free.end()) return;
    StagingMemory memory = *wanting;
    buffers_free.erase(wanting);
    PinIfWanted(memory, lock);
    buffers_free.push_back(memory);
    buffer_returned.notify_one();
  }
}

void StagingPool::State::Unmap(const StagingMemory& memory) const {
  if (memory.is_pinned) device->Unpin(memory.bytes);
  UnmapHostMemory(memory.bytes);
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
  for (const StagingMemory& buffer : state_->buffers_free) state_->Unmap(buffer);
  for (const auto& pieces : state_->scratch_free) {
    for (const StagingMemory& piece : pieces) state_->Unmap(piece);
  }
}

Result<StagingBuffer> StagingPool::Acquire() {
  SEALPOINT_RETURN_IF_ERROR(state_->CheckProcess());
  std::unique_lock lock(state_->mutex);
  state_->buffer_returned.wait(lock, [this] { return state_->HasFreeBuffer(); });
  return Lend(lock);
}

Result<StagingBuffer> StagingPool::TryAcquire() {
  SEALPOINT_RETURN_IF_ERROR(state_->CheckProcess());
  std::unique_lock lock(state_->mutex);
  return state_->HasFreeBuffer() ? Lend(lock) : StagingBuffer();
}

bool StagingPool::TryWithdraw(std::uint64_t count) {
  std::unique_lock lock(state_->mutex);
  if (!state_->CanWithdraw(count)) return false;
  state_->Withdraw(count, lock);
  return true;
}

void StagingPool::Withdraw(std::uint64_t count) {
  std::unique_lock lock(state_->mutex);
  state_->room_returned.wait(lock, [&] { return state_->CanWithdraw(count); });
  state_->Withdraw(count, lock);
}

void StagingPool::ReturnWithdrawn(std::uint64_t count) {
  const std::lock_guard lock(state_->mutex);
  state_->buffers_withdrawn -= count;
  state_->buffer_returned.notify_all();
  state_->room_returned.notify_all();
}

Result<StagingBuffer> StagingPool::Lend(std::unique_lock<std::mutex>& lock) {
  if (!state_->buffers_free.empty()) {
    StagingMemory memory = state_->buffers_free.back();
    state_->buffers_free.pop_back();
    state_->PinIfWanted(memory, lock);
    return StagingBuffer(this, memory, false);
  }
  ++state_->buffers_made;
  lock.unlock();  // mapping takes milliseconds
  auto mapped = MapHostMemory(state_->buffer_size);
  lock.lock();
  if (!mapped) {
    --state_->buffers_made;
    state_->buffer_returned.notify_one();  // who waits tries in its turn and learns the reason
    state_->room_returned.notify_all();
    return std::move(mapped).error();
  }
  state_->CountMapping(state_->buffer_size);
  StagingMemory memory{*mapped};
  state_->PinIfWanted(memory, lock);
  return StagingBuffer(this, memory, false);
}

Status StagingPool::Reserve(std::uint64_t count, const std::stop_token& stop) {
  SEALPOINT_RETURN_IF_ERROR(state_->CheckProcess());
  std::unique_lock lock(state_->mutex);
  while (state_->buffers_made < std::min(count, state_->buffers_max - state_->buffers_withdrawn) &&
         !stop.stop_requested()) {
    ++state_->buffers_made;
    lock.unlock();
    auto mapped = MapHostMemory(state_->buffer_size);
    lock.lock();
    if (!mapped) --state_->buffers_made;
    state_->buffer_returned.notify_one();  // there is a buffer more, or room for another try
    if (!mapped) return std::move(mapped).error();
    state_->CountMapping(state_->buffer_size);
    state_->buffers_free.push_back({*mapped});
  }
  state_->PinFree(lock);
  return {};
}

Result<StagingBuffer> StagingPool::AcquireScratch(std::uint64_t size_bytes) {
  SEALPOINT_RETURN_IF_ERROR(state_->CheckProcess());
  if (size_bytes > std::numeric_limits<std::uint64_t>::max() / 2) {
    return MakeError(Code::kIo, "no memory for a scratch buffer of ", size_bytes, " bytes");
  }
  // Memory that will not be kept is not rounded up to its class.
  std::uint64_t size = std::bit_ceil(std::max(size_bytes, SystemPageBytes()));
  if (size > state_->scratch_budget) size = AlignUp(size_bytes, SystemPageBytes());

  std::unique_lock lock(state_->mutex);
  auto& cached = state_->ScratchClass(size);
  const bool cacheable = state_->IsKept(size);
  state_->scratch_returned.wait(
      lock, [&] { return (cacheable && !cached.empty()) || state_->ScratchFits(size); });
  state_->scratch_lent += size;
  if (cacheable && !cached.empty()) {
    StagingMemory memory = cached.back();
    cached.pop_back();
    state_->PinIfWanted(memory, lock);
    return StagingBuffer(this, memory, true);
  }
  const auto evicted = state_->EvictScratch(size);
  state_->scratch_mapped += size;
  lock.unlock();
  for (const StagingMemory& piece : evicted) state_->Unmap(piece);
  auto mapped = MapHostMemory(size);
  lock.lock();
  if (!mapped) {
    state_->scratch_lent -= size;
    state_->scratch_mapped -= size;
    state_->scratch_returned.notify_all();
    return std::move(mapped).error();
  }
  state_->CountMapping(size);
  StagingMemory memory{*mapped};
  if (cacheable) state_->PinIfWanted(memory, lock);  // else it would be for this once
  return StagingBuffer(this, memory, true);
}

void StagingPool::Release(StagingMemory memory, bool is_scratch) {
  if (state_->InForkedChild()) return;
  const std::uint64_t size = memory.bytes.size();
  std::unique_lock lock(state_->mutex);
  if (!is_scratch) {
    state_->buffers_free.push_back(memory);
    state_->buffer_returned.notify_one();
    state_->room_returned.notify_all();
    return;
  }
  state_->scratch_lent -= size;
  if (state_->IsKept(size)) {
    state_->ScratchClass(size).push_back(memory);
  } else {
    state_->scratch_mapped -= size;
    state_->mapped_bytes -= size;
    state_->Unmap(memory);
  }
  state_->scratch_returned.notify_all();  // waiters want different sizes
}

void StagingPool::PinWith(std::shared_ptr<DeviceRuntime> device) {
  const std::lock_guard lock(state_->mutex);
  if (state_->device == nullptr) state_->device = std::move(device);
}

Status StagingPool::pin_failure() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pin_failure;
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

std::uint64_t StagingPool::pinned_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pinned_bytes;
}

}  // namespace sealpoint::internal::device
