// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/device_delivery.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "lib/device/host_mapping.h"
#include "lib/transfer/host_delivery.h"

namespace sealpoint::internal::transfer {
namespace {

constexpr std::size_t kWindowsMax = 3;
constexpr std::uint64_t kBufferMinBytes = 64 * kKiB;

// So many digests may one range need.
std::uint64_t ChecksMax(const DeliveryPlan& plan) {
  std::uint64_t count_max = 0;
  for (const PlanRange& range : plan.ranges) {
    std::uint64_t count = 0;
    for (const PlanChunk& chunk : plan.ChunksOf(range)) count += chunk.copy_count;
    count_max = std::max(count_max, count);
  }
  return count_max;
}

Status DeliverCopies(const DeliveryPlan& plan, const PlanChunk& chunk, ByteSpan raw, bool raw_stays,
                     StagedCopies& copies) {
  for (const PlanCopy& copy : plan.CopiesOf(chunk)) {
    Status status = copy.way() == CopyWay::kToDevice ? copies.Queue(chunk, copy, raw, raw_stays)
                                                     : HostDelivery::Copy(plan, chunk, copy, raw);
    if (!status.ok()) return plan.AtItem(chunk.name, std::move(status));
  }
  return {};
}

}  // namespace

DeviceStaging DeviceStaging::Divide(const DeliveryPlan& plan, int threads,
                                    std::uint64_t memory_budget_bytes, bool with_digests) {
  DeviceStaging staging{.window_bytes = plan.range_pages_max};
  if (with_digests) {
    staging.digest_bytes = AlignUp(ChecksMax(plan) * sizeof(Digest), device::kPageBytes);
  }
  // A window is what the budget is made for. A staging buffer takes no more than that, and less if
  // the pool, which lends powers of two, would otherwise have to lend twice as much.
  const std::uint64_t buffer_bytes = std::min(StagingBufferBytes(plan, true), staging.window_bytes);
  const std::uint64_t others = staging.window_bytes + staging.digest_bytes;
  staging.buffer_bytes = std::min(
      buffer_bytes, std::bit_ceil(others + std::min(buffer_bytes, kBufferMinBytes)) - others);
  const auto fits = [&](std::uint64_t thread_count, std::uint64_t window_count) {
    // The pool lends powers of two.
    const std::uint64_t lent =
        std::bit_ceil(thread_count * window_count * staging.bytes_per_window());
    return lent + thread_count * 2 * plan.decoded_size_max <= memory_budget_bytes;
  };
  const std::size_t range_count = std::max<std::size_t>(1, plan.ranges.size());
  auto thread_count = std::min<std::uint64_t>(static_cast<std::uint64_t>(threads), range_count);
  while (thread_count > 1 && !fits(thread_count, 1)) --thread_count;
  staging.threads = static_cast<int>(thread_count);
  staging.window_count = std::min(kWindowsMax, range_count);
  while (staging.window_count > 1 && !fits(thread_count, staging.window_count))
    --staging.window_count;
  return staging;
}

DeviceDelivery::DeviceDelivery(const Setup& setup, std::unique_ptr<StagedCopies> copies)
    : plan_(setup.plan),
      isolates_(setup.isolates),
      verifies_(setup.verifies),
      copies_(std::move(copies)) {
  const DeviceStaging& staging = setup.staging;
  MutableByteSpan rest = setup.memory;
  const auto take = [&rest](std::uint64_t size) {
    const MutableByteSpan taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  };
  for (std::size_t i = 0; i < staging.window_count; ++i) {
    Window window{.memory = take(staging.window_bytes)};
    const MutableByteSpan digests = take(staging.digest_bytes);
    const std::size_t count = digests.size() / sizeof(Digest);
    auto* const first = reinterpret_cast<Digest*>(digests.data());
    std::uninitialized_default_construct_n(first, count);
    window.digests = {first, count};
    windows_.push_back(std::move(window));
  }
  copies_->UseStaging(take(staging.window_count * staging.buffer_bytes), staging.window_count);
}

Result<FetchTarget> DeviceDelivery::Prepare(const PlanRange& range, RangeFetcher& fetcher) {
  current_ = &windows_[next_window_++ % windows_.size()];
  SEALPOINT_RETURN_IF_ERROR(CompleteWindow(*current_));
  current_->range = &range;
  current_->fetcher = &fetcher;
  current_->is_direct = false;
  return FetchTarget{.memory = current_->memory};
}

Status DeviceDelivery::Begin(const PlanChunk& chunk, ByteSpan raw) {
  const bool raw_stays = chunk.codec == Codec::kNone;  // in the window
  SEALPOINT_RETURN_IF_ERROR(DeliverCopies(plan_, chunk, raw, raw_stays, *copies_));
  return verifies_ ? AddChecks(chunk) : Status();
}

Status DeviceDelivery::AddDirect() {
  current_->is_direct = true;
  for (const PlanChunk& chunk : plan_.ChunksOf(*current_->range)) {
    SEALPOINT_RETURN_IF_ERROR(AddChecks(chunk));
  }
  return {};
}

Status DeviceDelivery::EndRange() {
  SEALPOINT_RETURN_IF_ERROR(QueueSeries());
  return queued().Mark(current_->fence);
}

Status DeviceDelivery::AddChecks(const PlanChunk& chunk) {
  for (const PlanCopy& copy : plan_.CopiesOf(chunk)) {
    if (!IsWholeOnDevice(chunk, copy)) continue;
    const std::byte* const data = copy.first_byte();
    device::DeviceChunks& chunks = series_.chunks;
    // Only the last chunk of a series may be shorter.
    const bool continues = series_.device == copy.device() &&
                           chunks.data + chunks.size_bytes == data &&
                           chunks.size_bytes % chunks.chunk_size_bytes == 0 &&
                           chunk.raw_size <= chunks.chunk_size_bytes;
    if (!continues) {
      SEALPOINT_RETURN_IF_ERROR(QueueSeries());
      series_ = {.device = copy.device(),
                 .name = chunk.name,
                 .chunks = {.data = data, .size_bytes = 0, .chunk_size_bytes = chunk.raw_size},
                 .first_digest = current_->checked.size()};
    }
    chunks.size_bytes += chunk.raw_size;
    current_->checked.push_back(&chunk);
  }
  return {};
}

Status DeviceDelivery::QueueSeries() {
  if (series_.device == kHostDevice) return {};
  const Series series = std::exchange(series_, {});
  return copies_->QueueDigests(
      series.device, series.name, series.chunks,
      current_->digests.subspan(series.first_digest, series.chunks.count()));
}

// Waits for what was copied out of the window, so that it may be filled again, and compares the
// digests that the device computed: they are in the window's memory once the fence is passed.
Status DeviceDelivery::CompleteWindow(Window& window) {
  SEALPOINT_RETURN_IF_ERROR(queued().Wait(window.fence));
  for (std::size_t i = 0; i < window.checked.size(); ++i) {
    const PlanChunk& chunk = *window.checked[i];
    if (window.digests[i] != chunk.raw_digest) {
      SEALPOINT_RETURN_IF_ERROR(CheckFile(window));
      return window.fetcher->At(
          chunk, MakeError(Code::kDevice,
                           "device copy corrupted: chunk digest mismatch, computed in "
                           "device memory ",
                           window.digests[i].ToHex(), ", recorded ", chunk.raw_digest.ToHex()));
    }
    bytes_.verified += chunk.raw_size;
    if (window.is_direct) bytes_.read_directly += chunk.raw_size;
  }
  window.checked.clear();
  return {};
}

// The host has not seen what a device read by itself. It reads that now, so that damage of the file
// is reported as such, with its rule, and not as a fault of the device.
Status DeviceDelivery::CheckFile(const Window& window) {
  if (!window.is_direct) return {};
  NoDelivery none(window.memory);
  return window.fetcher->Fetch(*window.range, none);
}

Status DeviceDelivery::Complete() {
  for (Window& window : windows_) SEALPOINT_RETURN_IF_ERROR(CompleteWindow(window));
  return {};
}

StagedDelivery::StagedDelivery(const DeliveryPlan& plan, std::unique_ptr<StagedCopies> copies,
                               device::StagingPool& pool, std::uint64_t buffer_max_bytes)
    : plan_(plan),
      pool_(pool),
      buffer_bytes_(std::min(StagingBufferBytes(plan, /*raw_stays=*/false), buffer_max_bytes)),
      copies_(std::move(copies)) {}

Status StagedDelivery::Begin(const PlanChunk& chunk, ByteSpan raw) {
  constexpr std::size_t kBufferCount = 2;
  if (memory_.empty()) {
    SEALPOINT_ASSIGN_OR_RETURN(memory_, pool_.AcquireScratch(kBufferCount * buffer_bytes_));
    copies_->UseStaging(memory_.bytes(), kBufferCount);
  }
  return DeliverCopies(plan_, chunk, raw, /*raw_stays=*/false, *copies_);
}

Status StagedDelivery::Complete() {
  SEALPOINT_RETURN_IF_ERROR(copies_->queued().WaitForAll());
  copies_->UseStaging({}, 0);
  memory_ = device::StagingBuffer();
  return {};
}

}  // namespace sealpoint::internal::transfer
