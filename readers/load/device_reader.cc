// SPDX-License-Identifier: Apache-2.0
#include "readers/load/device_reader.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include "lib/base/checked_math.h"
#include "lib/base/errors.h"
#include "lib/base/macros.h"
#include "readers/load/copy_out.h"

namespace sealpoint::internal {
namespace {

constexpr std::size_t kWindowsMax = 3;
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kBufferMinBytes = 64 * kKiB;

// The most digests that one range may need.
std::uint64_t ChecksMax(const ReadPlanData& plan) {
  std::uint64_t most = 0;
  for (const PlanRange& range : plan.ranges) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < range.chunk_count; ++i) {
      count += plan.chunks[range.first_chunk + i].copy_count;
    }
    most = std::max(most, count);
  }
  return most;
}

}  // namespace

DeviceStaging DeviceStaging::Divide(const ReadPlanData& plan, int threads,
                                    std::uint64_t memory_budget_bytes, bool with_digests) {
  DeviceStaging staging{.window_bytes = plan.range_pages_max};
  if (with_digests) {
    staging.digest_bytes = AlignUp(ChecksMax(plan) * sizeof(Digest), kPageBytes);
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

Result<std::unique_ptr<DeviceReader>> DeviceReader::Open(const PlanSource& source,
                                                         const DeviceStaging& staging,
                                                         bool verify_on_device) {
  SEALPOINT_ASSIGN_OR_RETURN(auto copies, CopiesToDevices::Open(source.plan, source.device));
  return std::unique_ptr<DeviceReader>(
      new DeviceReader(source, staging, verify_on_device, std::move(copies)));
}

DeviceReader::DeviceReader(const PlanSource& source, const DeviceStaging& staging,
                           bool verify_on_device, std::unique_ptr<CopiesToDevices> copies)
    : source_(source),
      staging_(staging),
      verify_on_device_(verify_on_device),
      reader_(source),
      copies_(std::move(copies)) {}

void DeviceReader::UseMemory(MutableByteSpan memory) {
  MutableByteSpan rest = memory;
  const auto take = [&rest](std::uint64_t size) {
    const MutableByteSpan taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  };
  for (std::size_t i = 0; i < staging_.window_count; ++i) {
    Window window{.memory = take(staging_.window_bytes)};
    const MutableByteSpan digests = take(staging_.digest_bytes);
    const std::size_t count = digests.size() / sizeof(Digest);
    auto* const first = reinterpret_cast<Digest*>(digests.data());
    std::uninitialized_default_construct_n(first, count);
    window.digests = {first, count};
    windows_.push_back(std::move(window));
  }
  copies_->UseStaging(take(staging_.window_count * staging_.buffer_bytes), staging_.window_count);
}

Status DeviceReader::ReadRange(const PlanRange& range) {
  Window& window = windows_[next_window_++ % windows_.size()];
  SEALPOINT_RETURN_IF_ERROR(Complete(window));
  window.range = &range;
  SEALPOINT_ASSIGN_OR_RETURN(window.is_direct, ReadDirectly(range));
  if (window.is_direct) {
    for (std::size_t i = 0; i < range.chunk_count; ++i) {
      SEALPOINT_RETURN_IF_ERROR(AddChecks(window, source_.plan.chunks[range.first_chunk + i]));
    }
  } else {
    SEALPOINT_RETURN_IF_ERROR(ReadOnHost(window));
  }
  SEALPOINT_RETURN_IF_ERROR(QueueSeries(window));
  return copies_->queued().Mark(window.fence);
}

// False if the host must read the range.
Result<bool> DeviceReader::ReadDirectly(const PlanRange& range) {
  if (direct_files_ == nullptr) return false;
  const std::vector<DirectRun> runs = DirectRunsOf(source_.plan, range);
  const auto file = runs.empty() ? nullptr : direct_files_->Open(range.blob);
  if (file == nullptr) return false;
  if (!callers_are_done_) SEALPOINT_RETURN_IF_ERROR(copies_->queued().WaitForStreams());
  callers_are_done_ = true;
  for (const DirectRun& run : runs) {
    Status status = file->Read(run.first->offset, run.device, run.to, run.size_bytes);
    if (status.code() == Code::kUnsupported) {
      direct_files_->Refuse(range.blob);
      return false;
    }
    if (!status.ok()) return reader_.At(range, *run.first, std::move(status));
  }
  return true;
}

Status DeviceReader::ReadOnHost(Window& window) {
  const auto take = [&](const PlanChunk& chunk, ByteSpan raw) -> Status {
    const bool raw_stays = chunk.codec == Codec::kNone;
    SEALPOINT_RETURN_IF_ERROR(CopyOut(source_.plan, chunk, raw, copies_.get(), raw_stays));
    return verify_on_device_ ? AddChecks(window, chunk) : Status();
  };
  return reader_.ReadRangeInto(window.memory, *window.range, take);
}

Status DeviceReader::AddChecks(Window& window, const PlanChunk& chunk) {
  for (const PlanCopy& copy : source_.plan.CopiesOf(chunk)) {
    if (!IsWholeOnDevice(chunk, copy)) continue;
    const std::byte* const data = copy.first_byte();
    DeviceChunks& chunks = series_.chunks;
    // Only the last chunk of a series may be shorter.
    const bool continues = series_.device == copy.device() &&
                           chunks.data + chunks.size_bytes == data &&
                           chunks.size_bytes % chunks.chunk_size_bytes == 0 &&
                           chunk.raw_size <= chunks.chunk_size_bytes;
    if (!continues) {
      SEALPOINT_RETURN_IF_ERROR(QueueSeries(window));
      series_ = {.device = copy.device(),
                 .name = chunk.name,
                 .chunks = {.data = data, .size_bytes = 0, .chunk_size_bytes = chunk.raw_size},
                 .first_digest = window.checked.size()};
    }
    chunks.size_bytes += chunk.raw_size;
    window.checked.push_back(&chunk);
  }
  return {};
}

Status DeviceReader::QueueSeries(const Window& window) {
  if (series_.device == kHostDevice) return {};
  const Series series = std::exchange(series_, {});
  return copies_->QueueDigests(series.device, series.name, series.chunks,
                               window.digests.subspan(series.first_digest, series.chunks.count()));
}

// Waits for what was copied out of the window, so that it may be filled again, and compares the
// digests that the device computed: they are in the window's memory once the fence is passed.
Status DeviceReader::Complete(Window& window) {
  SEALPOINT_RETURN_IF_ERROR(copies_->queued().Wait(window.fence));
  for (std::size_t i = 0; i < window.checked.size(); ++i) {
    const PlanChunk& chunk = *window.checked[i];
    if (window.digests[i] != chunk.raw_digest) {
      SEALPOINT_RETURN_IF_ERROR(CheckFile(window));
      return reader_.At(
          *window.range, chunk,
          MakeError(Code::kDevice,
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
Status DeviceReader::CheckFile(const Window& window) {
  if (!window.is_direct) return {};
  return reader_.ReadRangeInto(window.memory, *window.range,
                               [](const PlanChunk&, ByteSpan) { return Status(); });
}

Status DeviceReader::Finish() {
  for (Window& window : windows_) SEALPOINT_RETURN_IF_ERROR(Complete(window));
  return {};
}

}  // namespace sealpoint::internal
