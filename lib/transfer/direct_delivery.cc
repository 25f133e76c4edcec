// SPDX-License-Identifier: Apache-2.0
#include "lib/transfer/direct_delivery.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lib/base/macros.h"

namespace sealpoint::internal::transfer {
namespace {

constexpr std::size_t kOpenMax = 32;

}  // namespace

std::vector<DirectRun> DirectRunsOf(const DeliveryPlan& plan, const PlanRange& range) {
  std::vector<DirectRun> runs;
  for (const PlanChunk& chunk : plan.ChunksOf(range)) {
    if (chunk.codec != Codec::kNone || chunk.copy_count != 1) return {};
    const PlanCopy& copy = plan.CopiesOf(chunk).front();
    if (!IsWholeOnDevice(chunk, copy)) return {};
    std::byte* const to = copy.first_byte();
    if (runs.empty() || runs.back().device != copy.device() ||
        runs.back().to + runs.back().size_bytes != to) {
      runs.push_back({.device = copy.device(), .to = to, .first = &chunk});
    }
    runs.back().size_bytes += chunk.raw_size;
  }
  return runs;
}

std::shared_ptr<DirectFiles::Entry> DirectFiles::Make(std::uint32_t blob) {
  auto entry = std::make_shared<Entry>();
  entry->blob = blob;
  auto file = open_blob_(blob);
  if (!file || !(*file)->is_direct()) return entry;
  const std::optional<int> descriptor = (*file)->descriptor();
  if (!descriptor) return entry;
  auto device_file = devices_->OpenFile(*descriptor);
  if (!device_file) return entry;
  entry->file = *std::move(file);
  entry->device_file = *std::move(device_file);
  return entry;
}

std::shared_ptr<device::DeviceFile> DirectFiles::Open(std::uint32_t blob) {
  // Also while it is made: a descriptor must not become two such files.
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(open_.begin(), open_.end(),
                                  [blob](const auto& entry) { return entry->blob == blob; });
  const auto entry = found != open_.end() ? *found : open_.emplace_back(Make(blob));
  if (open_.size() > kOpenMax) open_.pop_front();
  return {entry, entry->device_file.get()};
}

void DirectFiles::Refuse(std::uint32_t blob) {
  const std::lock_guard lock(mutex_);
  for (auto& entry : open_) {
    if (entry->blob != blob) continue;
    // Others may still read from the entry that was there.
    entry = std::make_shared<Entry>();
    entry->blob = blob;
  }
}

Result<FetchTarget> DirectDelivery::Prepare(const PlanRange& range, RangeFetcher& fetcher) {
  SEALPOINT_ASSIGN_OR_RETURN(FetchTarget target, DeviceDelivery::Prepare(range, fetcher));
  SEALPOINT_ASSIGN_OR_RETURN(target.is_fetched, Read(range, fetcher));
  if (target.is_fetched) SEALPOINT_RETURN_IF_ERROR(AddDirect());
  return target;
}

// False if the host must read the range.
Result<bool> DirectDelivery::Read(const PlanRange& range, const RangeFetcher& fetcher) {
  const std::vector<DirectRun> runs = DirectRunsOf(plan(), range);
  const auto file = runs.empty() ? nullptr : files_.Open(range.blob);
  if (file == nullptr) return false;
  if (!callers_are_done_) SEALPOINT_RETURN_IF_ERROR(queued().WaitForStreams());
  callers_are_done_ = true;
  for (const DirectRun& run : runs) {
    Status status = file->Read(run.first->offset, run.device, run.to, run.size_bytes);
    if (status.code() == Code::kUnsupported) {
      files_.Refuse(range.blob);
      return false;
    }
    if (!status.ok()) return fetcher.At(*run.first, std::move(status));
  }
  return true;
}

}  // namespace sealpoint::internal::transfer
